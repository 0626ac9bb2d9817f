/** `andromeda admin secrets`: the secrets in a database that servers share, and the key that they are encrypted with. */
import { closeSync, openSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { DomainError } from '../../domain/error.ts';
import { secretsTopic } from '../../domain/key-rotation.ts';
import { makeSecretsKey, parseSecretsKeys, type SecretsKeys } from '../../lib/secrets-key.ts';
import type { Store } from '../../store/engine/index.ts';
import { listSecrets, reencryptSecrets, type SecretSummary } from '../../store/servers/secrets.ts';
import { jsonText, refusal, runCommand } from './installation.ts';
import { appendHostEntry, openBeside, ownConfig } from './opened.ts';

export interface SecretsOptions {
  config?: string;
}

export interface RotateOptions extends SecretsOptions {
  from: string;
  to: string;
}

/** Generates a key in a new file; the file must not exist. Resolves to the exit status. */
export function newSecretsKey(path: string): Promise<number> {
  return runCommand(() => {
    const file = resolve(path);
    writeNewFile(file, makeSecretsKey());
    const { keys } = readKeyFile(file);
    return `${file} holds a new key, ${keys[0].id}, of mode 0600.

Next:

  1. Copy it to every server, and somewhere that is not a server: without it, a dump of the database is worth nothing.
  2. Have it belong to the service's account there (chown), and name it in the configuration: secretsKeyFile: ${file}
`;
  });
}

/** Removes a file that could be written only in part, as on a full disk. */
function writeNewFile(file: string, text: string): void {
  let descriptor: number;
  try {
    descriptor = openSync(file, 'wx', 0o600);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'EEXIST') throw error;
    throw refusal(`${file} is there already, and is not replaced. Name another file.`);
  }
  try {
    writeFileSync(descriptor, text, { flush: true });
  } catch (error) {
    rmSync(file, { force: true });
    const message = `${file} cannot be written: ${(error as Error).message}. Nothing is left of it; repeat this when that is mended.`;
    throw new DomainError('invalid_state', message, { cause: error });
  } finally {
    closeSync(descriptor);
  }
}

export function printSecrets({ json, ...options }: SecretsOptions & { json: boolean }): Promise<number> {
  return runCommand(async () => {
    await using opened = await open(options);
    const all = await listSecrets(opened.store.read);
    if (json) return jsonText({ secrets: all });
    if (all.length === 0) return 'There is none yet; the first start makes them.\n';
    return table(all);
  });
}

/** Re-encrypts every secret with another key, all or none of them. It can be repeated. Resolves to the exit status. */
export function rotateSecrets({ from, to, ...options }: RotateOptions): Promise<number> {
  return runCommand(async () => {
    const [before, after] = [readKeyFile(resolve(from)), readKeyFile(resolve(to))];
    const [key] = after.keys;
    if (before.keys[0].id === key.id)
      throw new DomainError(
        'invalid_request',
        `${from} and ${to} hold the same key. Make another: andromeda admin secrets new-key FILE`,
      );
    await using opened = await open(options);
    const { store } = opened;
    const { changed, all } = await store.write(async (tx) => {
      const result = await reencryptSecrets(tx, before, after);
      if (result.changed > 0)
        await appendHostEntry(tx, {
          operation: 'rotateSecretsKey',
          target: key.id,
          details: `before: ${before.keys.map(({ id }) => id).join(', ')}; ${result.changed} secrets`,
        });
      return result;
    });
    await store.messages.send(secretsTopic, {});
    return rotated(key.id, to, { changed, all });
  });
}

async function open({ config: file }: SecretsOptions): Promise<{ store: Store } & AsyncDisposable> {
  const config = ownConfig(file);
  if (config.database === undefined)
    throw refusal(
      `The keys of this installation are files in ${config.dataDir}, and nothing of them is in its database: see \`andromeda admin key list\`.`,
    );
  return openBeside(config);
}

/** Throws `invalid_request` with a sentence, which quotes nothing of the file. */
function readKeyFile(file: string): SecretsKeys {
  const text = readFileSync(file, 'latin1');
  if ((statSync(file).mode & 0o077) !== 0)
    throw new DomainError('invalid_request', `${file} can be read or written by others. chmod 600 ${file}`);
  const reread = (): SecretsKeys => parseSecretsKeys(text, file, reread);
  return reread();
}

function table(all: readonly SecretSummary[]): string {
  const head = ['NAME', 'VERSION', 'KEY', 'MADE', 'CHANGED'];
  const values = all.map((one) => [one.name, `${one.version}`, one.keyId, one.createdAt, one.updatedAt]);
  const rows = [head, ...values];
  const widths = head.map((_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0)));
  const lineOf = (row: string[]) => row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join('  ');
  return rows.map((row) => `${lineOf(row).trimEnd()}\n`).join('');
}

function rotated(keyId: string, file: string, { changed, all }: { changed: number; all: number }): string {
  const done =
    changed === 0
      ? `All ${all} secrets were encrypted with the key ${keyId} before.`
      : `${changed} of ${all} secrets were encrypted anew; all of them have the key ${keyId} now.`;
  return `${done}

Next, on every server:

  1. Put ${file} in the place of its secretsKeyFile. One that has both keys in it, or that runs, goes on meanwhile.
  2. systemctl reload andromeda

Keep the key from before for as long as you keep dumps from before.
`;
}
