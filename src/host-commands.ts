/**
 * The commands of the host. The command line may not import the server's folders, so it is handed these; each loads its module
 * only when its command runs, which keeps `andromeda version` quick.
 */
import type { ServerCommands } from './cli/server-commands.ts';
import type { Signals } from './service/host/signals.ts';

/** `signals`: what `serve` obeys. */
export function hostCommands(signals?: Signals): ServerCommands {
  return {
    serve: async (options) => (await import('./service/host/serve.ts')).serve(options, signals),
    bootstrap: async (...args) => (await import('./service/host/bootstrap.ts')).bootstrap(...args),
    listKeys: async (options) => (await import('./service/host/keys.ts')).listKeys(options),
    newKey: async (...args) => (await import('./service/host/keys.ts')).newKey(...args),
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
  };
}
