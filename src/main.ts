/**
 * The one entry: argv → program → exit status. The command line may not know the server's rooms, so it is
 * handed loaders; each loads its module only when its command runs, which keeps `andromeda version` quick.
 * The status is set, not forced with `process.exit`, so that output on its way into a pipe still arrives.
 */
import { enableCompileCache } from 'node:module';
import { homedir } from 'node:os';
import { join } from 'node:path';

// Whatever is loaded after this line is compiled once, not at every start. Where it cannot be kept, it is not.
enableCompileCache(join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'andromeda', 'compiled'));
const { run } = await import('./cli/program.ts');

process.exitCode = await run(process.argv.slice(2), {
  serve: async (options) => (await import('./serve.ts')).serve(options),
  bootstrap: async (...args) => (await import('./bootstrap.ts')).bootstrap(...args),
});
