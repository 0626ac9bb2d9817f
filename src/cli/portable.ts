/**
 * The entry of the portable client: argv → program → exit status, without any server code. `scripts/build/client.ts` bundles
 * it into one file that Node 20 runs on Linux, macOS and Windows.
 */
import { runProcess } from './program.ts';

// By default, SIGUSR1 opens Node's debugger.
if (process.platform !== 'win32') process.on('SIGUSR1', () => {});
process.exitCode = await runProcess(process.argv.slice(2), undefined);
