/**
 * The one entry: argv → program → exit status. The status is set, not forced with `process.exit`, so that output on its way into a pipe still arrives.
 */
import { keepCompiled } from './lib/packaging.ts';
import { listenForSignals } from './service/host/signals.ts';

// Node would open its debugger.
process.on('SIGUSR1', () => {});
// What comes while the server is loaded counts as well.
const signals = process.argv[2] === 'serve' ? listenForSignals() : undefined;
keepCompiled();
const roles: Record<string, () => Promise<void>> = {
  gateway: gatewayProcess,
  'backup-process': backupProcess,
  'schema-process': schemaProcess,
};
void (roles[process.argv[2] ?? ''] ?? main)();

/** The service starts it, and it must not carry what the command line and the server need. */
async function gatewayProcess(): Promise<void> {
  (await import('./gateway/process/role.ts')).runGatewayProcess(process.argv.slice(3));
}

/** The service starts it too: a backup takes as long as the database is large. */
async function backupProcess(): Promise<void> {
  await (await import('./service/backup/role.ts')).runBackupProcess();
}

/** Root's commands start it: what is the service's is opened by the service's account. */
async function schemaProcess(): Promise<void> {
  await (await import('./service/host/unit/schema-process.ts')).runSchemaProcess(process.argv.slice(3));
}

async function main(): Promise<void> {
  const { runProcess } = await import('./cli/program.ts');
  const { hostCommands } = await import('./host-commands.ts');
  process.exitCode = await runProcess(process.argv.slice(2), hostCommands(signals));
}
