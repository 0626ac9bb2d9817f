/**
 * `andromeda admin key`: lists the service's own keys, and replaces them. It works on the host, whether or not a
 * service runs, which takes up changes by itself.
 */
import { existsSync } from 'node:fs';
import { DomainError } from '../../domain/error.ts';
import {
  type HeldKeys,
  type KeyKind,
  keyKinds,
  keySetText,
  keysAt,
  mapHeld,
  mapKeys,
  settled,
  usualKeepDays,
  withNext,
} from '../../domain/key-rotation.ts';
import { keyFileOf, listMissingKeys, missingKeyText, writeKeyFiles } from '../../store/data-dir/key-files.ts';
import { databaseTime } from '../../store/engine/engine.ts';
import type { Store } from '../../store/engine/index.ts';
import { type KeyStore, keysInFiles } from '../compose/key-stores.ts';
import { describeText, makeKey } from '../compose/service-keys.ts';
import type { Config } from '../config/index.ts';
import { jsonText, refusal, runCommand } from './installation.ts';
import { appendHostEntry, openBeside, openKeys, ownConfig } from './opened.ts';

export interface KeyOptions {
  config?: string;
}

export interface NewKeyOptions extends KeyOptions {
  keep?: number;
  yes?: boolean;
}

const titles: Record<KeyKind, string> = {
  host: 'host     what the SSH gateway shows to people',
  client: 'client   what the SSH gateway shows to login nodes',
  issuer: 'issuer   what the built-in sign-in signs tokens with',
  audit: 'audit    what signs the audit trail',
};

export function listKeys({ config: file, json }: KeyOptions & { json: boolean }): Promise<number> {
  return runCommand(async () => {
    const config = ownConfig(file);
    if (config.database === undefined)
      return describeAll(keysInFiles(config.dataDir, Date.now), Date.now(), json);
    await using opened = await openBeside(config);
    const { store } = opened;
    return await describeAll(await openKeys(config, store), await databaseTime(store.read), json);
  }, file);
}

async function describeAll(keys: KeyStore, now: number, json: boolean): Promise<string> {
  if (json) {
    const all = await Promise.all(keyKinds.map((kind) => heldOf(kind, keys, now)));
    return jsonText({ keys: all.filter((held) => held !== undefined) });
  }
  const all = await Promise.all(keyKinds.map((kind) => describe(kind, keys, now)));
  return all.filter((text) => text !== '').join('\n');
}

/** Adds a key next to one, or replaces a missing one, with an entry in the audit trail. Resolves to the exit status. */
export function newKey(kind: KeyKind, { config: file, ...options }: NewKeyOptions): Promise<number> {
  return runCommand(async () => {
    const config = ownConfig(file);
    const isMissing = config.database === undefined && requireUsed(config, kind, options.yes);
    await using opened = await openBeside(config);
    const { store } = opened;
    if (isMissing) return await replaceMissing(config.dataDir, kind, store);
    const keys = await openKeys(config, store);
    const { keep = usualKeepDays } = options;
    await putBeside(kind, keep, keys, store);
    const now = await databaseTime(store.read);
    return `${await describe(kind, keys, now)}\n${nextSteps(kind, keep)}\n`;
  }, file);
}

/** Must precede opening the database, which would create one. Returns true if the key is missing and that is accepted. */
function requireUsed({ dataDir }: Config, kind: KeyKind, isAccepted = false): boolean {
  const [missing] = listMissingKeys(dataDir, [kind], { unchanged: false });
  if (missing && !isAccepted) throw new DomainError('invalid_request', missingKeyText(missing));
  if (!missing && !existsSync(keyFileOf(dataDir, kind))) throw noSuchKey();
  return missing !== undefined;
}

function noSuchKey(): DomainError {
  return new DomainError('not_found', 'There is no such key yet; the first start makes it.');
}

async function replaceMissing(dataDir: string, kind: KeyKind, store: Store): Promise<string> {
  const entry = { operation: 'newKey', target: kind, details: 'the one before was missing' };
  await store.write((tx) => appendHostEntry(tx, entry));
  writeKeyFiles(dataDir, kind, { key: await makeKey(kind) });
  return `${keyFileOf(dataDir, kind)} is made. Start the service.\n`;
}

async function putBeside(kind: KeyKind, keep: number, keys: KeyStore, store: Store): Promise<void> {
  const found = await keys.find(kind);
  if (!found) throw noSuchKey();
  const title = keys.title(kind);
  const idOf = (text: string) => describeText(kind, text, title).id;
  const before = settled(found, await databaseTime(store.read));
  if (before.next && keep > 0)
    throw refusal(
      `There is another one beside it already, ${idOf(before.next.key)}. The former goes at ${before.next.until}. For a key that was stolen, --keep 0 makes one that holds alone.`,
    );
  const next = await makeKey(kind, { text: before.key, title, stolen: keep === 0 });
  // First: a change without an audit entry is worse than an entry about a change that was cut off.
  await store.write((tx) =>
    appendHostEntry(tx, {
      operation: 'newKey',
      target: kind,
      details: `${idOf(next)} takes the place of ${idOf(before.key)}, which holds for ${keep} more days`,
    }),
  );
  await keys.change(kind, (set, now) => {
    const present = settled(set, now);
    if (keySetText(present) !== keySetText(before))
      throw refusal(
        'Another command changed this key meanwhile, and this one did not. Look at `admin key list`.',
      );
    return withNext(present, next, keep, now);
  });
}

async function heldOf(kind: KeyKind, keys: KeyStore, now: number) {
  const set = await keys.find(kind);
  const title = keys.title(kind);
  const described = set && mapKeys(set, (text) => describeText(kind, text, title));
  return described && { kind, in: title, ...keysAt(described, now) };
}

async function describe(kind: KeyKind, keys: KeyStore, now: number): Promise<string> {
  const held = await heldOf(kind, keys, now);
  if (!held) return '';
  const texts = mapHeld(held, ({ id, line }) => (line === undefined ? id : `${id}   ${line}`));
  return `${titles[kind]}, in ${held.in}\n${rowsOf(texts).join('\n')}\n`;
}

function rowsOf({ used, next, former, from, until }: HeldKeys<string>): string[] {
  return [
    `  in use   ${used}${next === undefined ? '' : `   until ${until}`}`,
    ...(next === undefined ? [] : [`  next     ${next}   used from ${from} on`]),
    ...(former === undefined ? [] : [`  former   ${former}   until ${until}`]),
  ];
}

function nextSteps(kind: KeyKind, keep: number): string {
  const where = keep === 0 ? 'in the place of' : 'beside';
  const then: Record<KeyKind, string> = {
    host: 'Clients learn it as they log in (UpdateHostKeys); publish it where you published the other one.',
    client: `Put its line ${where} the other one where login nodes keep the key of the gateway; simulated ones take it by themselves.
\`andromeda admin problems\` names login nodes that do not take it yet.`,
    issuer: `It is published ${where} the other one. Nobody signs in again.`,
    audit:
      'Note it where you keep the other one: `andromeda admin audit key` prints all whose signatures count.',
  };
  const when =
    keep === 0
      ? 'It holds alone, from now on'
      : 'Both hold until the former goes by itself, which needs nothing more';
  return `${when}. A service that runs takes it up within seconds.\n${then[kind]}`;
}
