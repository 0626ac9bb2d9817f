/** The interface between the command line and the server's part of the program. */
import type { KeyKind } from '../domain/key-rotation.ts';

export interface ServeOptions {
  config?: string;
  demo: boolean;
  data?: string;
}

export interface OnHost {
  config?: string;
}

export interface BootstrapOptions extends OnHost {
  email: string;
  name?: string;
}

export interface InstallationOptions extends OnHost {
  data?: string;
}

export interface RestoreOptions extends InstallationOptions {
  drill?: true;
}

export interface ListOptions extends OnHost {
  json: boolean;
}

export interface CheckOptions extends ListOptions {
  quiet: boolean;
}

export interface ServiceOptions {
  config: string;
  user: string;
  root: string;
  dryRun: boolean;
  enable: boolean;
}

export interface RotateSecretsOptions extends OnHost {
  from: string;
  to: string;
}

export interface MigrateOptions extends OnHost {
  to: 'sqlite' | 'postgres';
}

/** Commands that need server code, passed in by `main.ts`. Numbers are exit statuses. */
export interface ServerCommands {
  serve(options: ServeOptions): Promise<number>;
  bootstrap(options: BootstrapOptions, newPassword: (email: string) => Promise<string>): Promise<number>;
  listKeys(options: ListOptions): Promise<number>;
  /** Adds a key next to one of the service's keys, or replaces one that is lost. */
  newKey(kind: KeyKind, options: OnHost & { keep?: number; yes?: boolean }): Promise<number>;
  newSecretsKey(file: string): Promise<number>;
  listSecrets(options: ListOptions): Promise<number>;
  rotateSecrets(options: RotateSecretsOptions): Promise<number>;
  /** Continues the audit trail after an entry at which the chain broke. */
  acceptAuditBreak(seq: number, options: OnHost): Promise<number>;
  backup(
    file: string | undefined,
    options: InstallationOptions,
    waiting: { onProgress(part: number): void; signal: AbortSignal },
  ): Promise<number>;
  listBackups(options: InstallationOptions & { json?: boolean }): Promise<number>;
  restore(source: string | undefined, options: RestoreOptions, signal: AbortSignal): Promise<number>;
  migrate(
    options: MigrateOptions,
    waiting: { onProgress(text: string): void; signal: AbortSignal },
  ): Promise<number>;
  check(options: CheckOptions): Promise<number>;
  doctor(options: CheckOptions): Promise<number>;
  /** Whether commands without --config are about an installation on this host. */
  hasInstallation(): Promise<boolean>;
  installService(options: ServiceOptions): Promise<number>;
  upgradeService(): Promise<number>;
  rollbackService(): Promise<number>;
  printUnit(options: ServiceOptions): Promise<number>;
  askService(options: { config: string }): Promise<number>;
  reloadService(options: { config: string }): Promise<number>;
  components?(): Promise<Record<string, string>>;
}
