/**
 * The entry of the portable client: argv → program → exit status, without anything of the server. `scripts/build/client.ts`
 * makes one file of it that Node 20 runs on Linux, macOS and Windows.
 */
import { runProcess } from './program.ts';

// Node would open its debugger.
if (process.platform !== 'win32') process.on('SIGUSR1', () => {});
process.exitCode = await runProcess(process.argv.slice(2), undefined);
