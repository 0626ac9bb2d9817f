/**
 * The one entry: argv → program → exit status. The command line may not import the server's folders, so it is
 * handed loaders; each loads its module only when its command runs, which keeps `andromeda version` quick.
 * The status is set, not forced with `process.exit`, so that output on its way into a pipe still arrives.
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
  const { run } = await import('./cli/program.ts');
  process.exitCode = await run(process.argv.slice(2), {
    serve: async (options) => (await import('./service/host/serve.ts')).serve(options, signals),
    bootstrap: async (...args) => (await import('./service/host/bootstrap.ts')).bootstrap(...args),
    listKeys: async (options) => (await import('./service/host/keys.ts')).listKeys(options),
    newKey: async (...args) => (await import('./service/host/keys.ts')).newKey(...args),
    stepKey: async (...args) => (await import('./service/host/keys.ts')).stepKey(...args),
    newSecretsKey: async (file) => (await import('./service/host/secrets.ts')).newSecretsKey(file),
    listSecrets: async (options) => (await import('./service/host/secrets.ts')).printSecrets(options),
    rotateSecrets: async (options) => (await import('./service/host/secrets.ts')).rotateSecrets(options),
    acceptAuditBreak: async (...args) =>
      (await import('./service/host/accept-break.ts')).acceptAuditBreak(...args),
    backup: async (...args) => (await import('./service/host/backup.ts')).backup(...args),
    listBackups: async (options) => (await import('./service/host/backup.ts')).listKept(options),
    restore: async (...args) => (await import('./service/host/backup.ts')).restore(...args),
    migrate: async (...args) => (await import('./service/host/migrate.ts')).migrateDatabase(...args),
    check: async (options) => (await import('./service/host/checks/check.ts')).check(options),
    doctor: async (options) => (await import('./service/host/checks/doctor.ts')).doctor(options),
    hasInstallation: async () => (await import('./service/host/installation.ts')).hasInstallation(),
    installService: async (options) =>
      (await import('./service/host/unit/service.ts')).installService(options),
    upgradeService: async () => (await import('./service/host/unit/upgrade.ts')).upgradeService(),
    rollbackService: async () => (await import('./service/host/unit/upgrade.ts')).rollbackService(),
    printUnit: async (options) => (await import('./service/host/unit/service.ts')).printUnit(options),
    askService: async (options) => (await import('./service/host/ask-service.ts')).askService(options),
    reloadService: async (options) => (await import('./service/host/ask-service.ts')).reloadService(options),
    components: async () => (await import('./service/compose/components.ts')).components(),
  });
}
