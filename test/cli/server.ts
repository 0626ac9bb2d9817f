import type { ServerCommands } from '../../src/cli/server-commands.ts';

const none = async () => {
  throw new Error('not to be called');
};

/** The server's part of the program, where nothing of it is to run. */
export const noServer: ServerCommands = {
  serve: none,
  bootstrap: none,
  listKeys: none,
  newKey: none,
  newSecretsKey: none,
  listSecrets: none,
  rotateSecrets: none,
  acceptAuditBreak: none,
  backup: none,
  listBackups: none,
  restore: none,
  migrate: none,
  check: none,
  doctor: none,
  hasInstallation: async () => false,
  installService: none,
  printUnit: none,
  upgradeService: none,
  rollbackService: none,
  askService: none,
  reloadService: none,
};
