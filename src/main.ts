/**
 * The one entry: argv → program → exit status. The command line may not know the server's rooms, so it is
 * handed loaders; each loads its module only when its command runs, which keeps `andromeda version` quick.
 * The status is set, not forced with `process.exit`, so that output on its way into a pipe still arrives.
 */
import { keepCompiled } from './lib/packaging.ts';

keepCompiled();
void main();

async function main(): Promise<void> {
  const { run } = await import('./cli/program.ts');
  process.exitCode = await run(process.argv.slice(2), {
    serve: async (options) => (await import('./host/serve.ts')).serve(options),
    bootstrap: async (...args) => (await import('./host/bootstrap.ts')).bootstrap(...args),
    backup: async (...args) => (await import('./host/backup.ts')).backup(...args),
    restore: async (...args) => (await import('./host/backup.ts')).restore(...args),
    installService: async (options) => (await import('./host/service.ts')).installService(options),
    printUnit: async (options) => (await import('./host/service.ts')).printUnit(options),
    components: async () => (await import('./app/components.ts')).components(),
  });
}
