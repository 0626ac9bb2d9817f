/** What the command line asks of the server's part of the program. */
import type { KeyKind, KeyStep } from '../domain/key-rotation.ts';

export interface ServeOptions {
  config?: string;
  demo: boolean;
  data?: string;
}

export interface BootstrapOptions {
  config?: string;
  email: string;
  name?: string;
}

/** Which installation on this host: its configuration file, or the data directory itself. */
export interface InstallationOptions {
  config?: string;
  data?: string;
}

export interface RestoreOptions extends InstallationOptions {
  identity?: string;
  drill?: true;
}

export interface CheckOptions {
  config?: string;
  quiet: boolean;
}

interface DoctorOptions extends CheckOptions {
  json: boolean;
}

export interface ServiceOptions {
  config: string;
  user: string;
  root: string;
  dryRun: boolean;
}

/** One of the service's own keys, on the host itself. */
export interface KeyOptions {
  config?: string;
  force?: boolean;
}

export interface NewKeyOptions extends Pick<KeyOptions, 'config'> {
  yes?: boolean;
}

/** The secrets in a shared database, on the host itself. */
export interface SecretsOptions {
  config?: string;
}

/** `from` and `to`: the files with the keys. */
export interface RotateSecretsOptions extends SecretsOptions {
  from: string;
  to: string;
}

export interface MigrateOptions {
  config?: string;
  to: 'sqlite' | 'postgres';
}

/** What only the server's folders can do, handed over by `main.ts`. */
export interface ServerCommands {
  /** Resolves to the exit status once the server was stopped. */
  serve(options: ServeOptions): Promise<number>;
  /** Makes an operator in the installation's data directory. Resolves to the exit status. */
  bootstrap(options: BootstrapOptions, newPassword: (email: string) => Promise<string>): Promise<number>;
  listKeys(options: KeyOptions): Promise<number>;
  /** Takes a step with one of the service's own keys. Resolves to the exit status. */
  stepKey(step: KeyStep, kind: KeyKind, options: KeyOptions): Promise<number>;
  /** Makes a key of the service anew whose file is gone. Resolves to the exit status. */
  newKey(kind: KeyKind | 'audit', options: NewKeyOptions): Promise<number>;
  /** Makes the key that secrets in a shared database are encrypted with. Resolves to the exit status. */
  newSecretsKey(file: string): Promise<number>;
  listSecrets(options: SecretsOptions): Promise<number>;
  rotateSecrets(options: RotateSecretsOptions): Promise<number>;
  /** Has the audit trail go on behind an entry at which the chain broke. Resolves to the exit status. */
  acceptAuditBreak(seq: number, options: { config?: string }): Promise<number>;
  /** Writes the installation to a file, or to where the configuration keeps backups. Resolves to the exit status. */
  backup(
    file: string | undefined,
    options: InstallationOptions,
    waiting: { onProgress(part: number): void; signal: AbortSignal },
  ): Promise<number>;
  /** Prints the backups that are kept. Resolves to the exit status. */
  listBackups(options: InstallationOptions): Promise<number>;
  /** Restores a backup, or tries to. Resolves to the exit status. */
  restore(source: string | undefined, options: RestoreOptions, signal: AbortSignal): Promise<number>;
  /** Copies an installation from one kind of database to the other. Resolves to the exit status. */
  migrate(
    options: MigrateOptions,
    waiting: { onProgress(text: string): void; signal: AbortSignal },
  ): Promise<number>;
  /** Says whether the service could start from a configuration. Resolves to the exit status. */
  check(options: CheckOptions): Promise<number>;
  /** Says whether an installation is well. Resolves to the exit status. */
  doctor(options: DoctorOptions): Promise<number>;
  /** Whether there is an installation on this host that commands without --config are about. */
  hasInstallation(): Promise<boolean>;
  /** Sets the service up under systemd. Resolves to the exit status. */
  installService(options: ServiceOptions): Promise<number>;
  /** Puts this program in the place of the one that systemd runs. Resolves to the exit status. */
  upgradeService(): Promise<number>;
  /** Puts back what was there before the last upgrade. Resolves to the exit status. */
  rollbackService(): Promise<number>;
  printUnit(options: ServiceOptions): Promise<number>;
  /** Says whether the service of a configuration serves. Resolves to the exit status. */
  askService(options: { config: string }): Promise<number>;
  reloadService(options: { config: string }): Promise<number>;
  /** Names and versions of parts that only the server loads, for `andromeda version`. */
  components?(): Promise<Record<string, string>>;
}
