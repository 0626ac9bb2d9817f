/**
 * `systemctl reload`: the service starts anew in its own process, with the settings, certificates and program that are on disk.
 * The gateway's processes go on, and with them every session.
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { requireCertificates } from '../config/certificates.ts';
import { type Config, readConfig } from '../config/index.ts';
import { readLab } from '../config/lab-file.ts';
import { DomainError } from '../domain/error.ts';
import { messageOf } from '../lib/error-message.ts';
import { gatewayArguments, selfArguments } from '../lib/packaging.ts';
import { viewPostgres } from '../store/engine.ts';
import type { Store } from '../store/index.ts';
import { inspectShared } from '../store/inspect-shared.ts';
import { listSecrets, missingSecretsKey, readSecrets } from '../store/secrets.ts';
import { findServer } from '../store/servers.ts';

/**
 * Why the service could not start with what is on disk, in a sentence; undefined when it can as far as can be seen. `server` is
 * the one that is to go on.
 */
export async function refusalToReload(
  configFile: string,
  server: Store['server'],
): Promise<string | undefined> {
  try {
    const config = readConfig(configFile);
    requireCertificates(config);
    const { seed } = config;
    if (seed !== undefined) readLab(seed);
    await requireDatabase(config, server);
  } catch (error) {
    return messageOf(error);
  }
  // It may be another one by now, or half of one.
  const version = [...gatewayArguments().slice(0, -1), 'version'];
  return promisify(execFile)(process.execPath, version, { timeout: 30_000, maxBuffer: 64 * 1024 }).then(
    () => undefined,
    () => `${process.execPath} does not run. Put the program there that the service is to go on with.`,
  );
}

/** Throws in words where the database is away, or is not the one of before, or has secrets that cannot be read. */
async function requireDatabase({ database, secrets }: Config, server: Store['server']): Promise<void> {
  const refuse = (reason: string) => new DomainError('invalid_state', reason);
  if (database === undefined) {
    if (server.isAlone) return;
    throw refuse('The settings name no database any more (`database`), and this server has a shared one.');
  }
  const view = await viewPostgres(database);
  try {
    const { state, missing, isMovedAway } = await inspectShared(view);
    if (isMovedAway) throw refuse(`${view.name} was copied to another database, and takes no writes.`);
    const [first] = missing;
    if (first !== undefined)
      throw refuse(`${view.name} lacks what the service needs there, such as ${first}.`);
    const known = state === 'new' ? undefined : await findServer(view.reader, server.id);
    if (!known)
      throw refuse(
        `${view.name} is another database than the one that this server has: it does not know this server. If it is to have that one, stop it and start it again.`,
      );
    if (!secrets) throw missingSecretsKey(await listSecrets(view.reader));
    await readSecrets(view.reader, secrets);
  } finally {
    await view.close();
  }
}

/** Runs the program on disk in place of this one, with the same arguments: the number of the process stays. */
export function replaceProcess(): void {
  process.execve?.(process.execPath, [process.argv0, ...selfArguments()], process.env);
}
