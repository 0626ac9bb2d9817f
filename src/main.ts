/**
 * The one entry: argv → program → exit status. The command line may not import the server's folders, so it is
 * handed loaders; each loads its module only when its command runs, which keeps `andromeda version` quick.
 * The status is set, not forced with `process.exit`, so that output on its way into a pipe still arrives.
 */
import { listenForSignals } from './host/signals.ts';
import { keepCompiled } from './lib/packaging.ts';

// Node would open its debugger.
process.on('SIGUSR1', () => {});
// What comes while the server is loaded counts as well.
const signals = process.argv[2] === 'serve' ? listenForSignals() : undefined;
keepCompiled();
const roles: Record<string, () => Promise<void>> = {
  gateway: gatewayProcess,
  'backup-process': backupProcess,
};
void (roles[process.argv[2] ?? ''] ?? main)();

/** The service starts it, and it must not carry what the command line and the server need. */
async function gatewayProcess(): Promise<void> {
  (await import('./gateway-process/role.ts')).runGatewayProcess(process.argv.slice(3));
}

/** The service starts it too: a backup takes as long as the database is large. */
async function backupProcess(): Promise<void> {
  await (await import('./backup/role.ts')).runBackupProcess();
}

async function main(): Promise<void> {
  const { run } = await import('./cli/program.ts');
  process.exitCode = await run(process.argv.slice(2), {
    serve: async (options) => (await import('./host/serve.ts')).serve(options, signals),
    bootstrap: async (...args) => (await import('./host/bootstrap.ts')).bootstrap(...args),
    listKeys: async (options) => (await import('./host/keys.ts')).listKeys(options),
    stepKey: async (...args) => (await import('./host/keys.ts')).stepKey(...args),
    newSecretsKey: async (file) => (await import('./host/secrets.ts')).newSecretsKey(file),
    listSecrets: async (options) => (await import('./host/secrets.ts')).printSecrets(options),
    rotateSecrets: async (options) => (await import('./host/secrets.ts')).rotateSecrets(options),
    backup: async (...args) => (await import('./host/backup.ts')).backup(...args),
    listBackups: async (options) => (await import('./host/backup.ts')).listKept(options),
    restore: async (...args) => (await import('./host/backup.ts')).restore(...args),
    migrate: async (...args) => (await import('./host/migrate.ts')).migrateDatabase(...args),
    check: async (options) => (await import('./host/check.ts')).check(options),
    doctor: async (options) => (await import('./host/doctor.ts')).doctor(options),
    hasInstallation: async () => (await import('./host/installation.ts')).hasInstallation(),
    addClients: async (options) => (await import('./host/clients.ts')).addClients(options),
    listClients: async (options) => (await import('./host/clients.ts')).listClients(options),
    installService: async (options) => (await import('./host/service.ts')).installService(options),
    upgradeService: async (options) => (await import('./host/upgrade.ts')).upgradeService(options),
    printUnit: async (options) => (await import('./host/service.ts')).printUnit(options),
    askService: async (options) => (await import('./host/ask-service.ts')).askService(options),
    components: async () => (await import('./app/components.ts')).components(),
  });
}
