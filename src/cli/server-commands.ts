/** What the command line asks of the server's part of the program. */
import type { KeyKind, KeyStep } from '../domain/key-rotation.ts';

export interface ServeOptions {
  config?: string;
  demo: boolean;
  data?: string;
}

export interface BootstrapOptions {
  config: string;
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

export interface DoctorOptions extends CheckOptions {
  json: boolean;
}

export interface ClientsOptions extends InstallationOptions {
  file: string;
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
  /** Makes the key that secrets in a shared database are encrypted with. Resolves to the exit status. */
  newSecretsKey(file: string): Promise<number>;
  listSecrets(options: SecretsOptions): Promise<number>;
  rotateSecrets(options: RotateSecretsOptions): Promise<number>;
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
  /** Takes clients for people's machines from a release file. Resolves to the exit status. */
  addClients(options: ClientsOptions): Promise<number>;
  /** Prints which clients people are offered. Resolves to the exit status. */
  listClients(options: InstallationOptions): Promise<number>;
  /** Sets the service up under systemd. Resolves to the exit status. */
  installService(options: ServiceOptions): Promise<number>;
  /** Puts another program in the place of the one that systemd runs. Resolves to the exit status. */
  upgradeService(options: { file: string; config: string }): Promise<number>;
  printUnit(options: ServiceOptions): Promise<number>;
  /** Says whether the service of a configuration serves. Resolves to the exit status. */
  askService(options: { config: string }): Promise<number>;
  /** Names and versions of parts that only the server loads, for `andromeda version`. */
  components?(): Promise<Record<string, string>>;
}
