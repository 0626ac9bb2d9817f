/** The service's own keys as they lie there, in files or in a shared database, and the steps from one to the next. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import {
  accessTokenSeconds,
  idTokenSeconds,
  keysText,
  makeSigningKey,
  parseKeys,
  signingKeyIds,
  stepSigningKeyFile,
  stepSigningKeys,
} from '../../api/identity/issuer/keys.ts';
import { type KeyKind, type KeyRotationState, type KeyStep, keyKinds } from '../../domain/key-rotation.ts';
import { secretsTopic, secretTitle, serviceSecrets } from '../../domain/service-secret.ts';
import {
  announceSshKey,
  retireSshKey,
  switchSshKey,
  switchSshKeyBack,
  withdrawSshKey,
} from '../../lib/ssh/key-set.ts';
import { parseSshKeySet, stepSshKeySet } from '../../lib/ssh/key-set-text.ts';
import { readKeysInUse } from '../../store/data-dir/keys-in-use.ts';
import type { Store } from '../../store/engine/index.ts';
import { openSecrets } from '../../store/servers/secrets.ts';
import { findSharedKeysInUse } from '../../store/servers/server-keys.ts';
import { readOwnSecret } from '../compose/service-keys.ts';
import type { Config } from '../config/index.ts';

/** Clocks of those who check tokens differ by so much, as they allow. */
const toleranceMs = 60_000;
const signedMs = Math.max(accessTokenSeconds, idTokenSeconds) * 1000 + toleranceMs;

/** What there is of one kind. */
export interface HeldKeys extends KeyRotationState {
  /** The lines of public keys, where people have to install them. */
  lines: Partial<Record<'next' | 'previous', string>>;
  /** The file, where this server has it as one although the others do not. */
  file?: string;
}

export interface KeyHolder {
  /** Undefined where there is none yet. */
  read(kind: KeyKind): Promise<HeldKeys | undefined>;
  take(step: KeyStep, kind: KeyKind): Promise<void>;
}

/** Keys in files of the data directory. */
export function keysInFiles(dataDir: string): KeyHolder {
  const fileOf = (kind: KeyKind) => join(dataDir, serviceSecrets[kind].file);
  return {
    async read(kind) {
      const text = readOwnSecret(dataDir, kind);
      return text === undefined
        ? undefined
        : { ...heldOf(kind, text, fileOf(kind)), inUse: readKeysInUse(dataDir)[kind] };
    },
    async take(step, kind) {
      if (kind === 'issuer') return stepSigningKeyFile(step, dataDir);
      sshSteps[step](fileOf(kind));
    },
  };
}

/** Keys in the database that servers share; a file of this server wins, as in the service. */
export async function sharedKeys(
  { dataDir, secrets: keys }: Pick<Config, 'dataDir'> & { secrets: NonNullable<Config['secrets']> },
  store: Store,
): Promise<KeyHolder> {
  const secrets = await openSecrets(store, keys);
  const files = keysInFiles(dataDir);
  const isFile = (kind: KeyKind) => existsSync(join(dataDir, serviceSecrets[kind].file));
  return {
    async read(kind) {
      const { name, file } = serviceSecrets[kind];
      const own = await files.read(kind);
      if (own) return { ...own, file: join(dataDir, file) };
      const text = await secrets.find(name);
      if (text === undefined) return undefined;
      const held = heldOf(kind, text, secretTitle(name));
      return { ...held, inUse: await findSharedKeysInUse(store, kind, held.current) };
    },
    async take(step, kind) {
      if (isFile(kind)) return files.take(step, kind);
      const { name } = serviceSecrets[kind];
      const made = kind === 'issuer' && step === 'announce' ? await makeSigningKey() : undefined;
      await secrets.change(name, (text) => {
        if (text === undefined) return undefined;
        return kind === 'issuer'
          ? keysText(stepSigningKeys(step, parseKeys(text, secretTitle(name)), made))
          : stepSshKeySet(step, text, secretTitle(name));
      });
      await store.messages.send(secretsTopic, { name });
    },
  };
}

/** Those of which there are any; the issuer's are made where it is used. */
export async function listHeldKeys(holder: KeyHolder): Promise<[KeyKind, HeldKeys][]> {
  const all: [KeyKind, HeldKeys][] = [];
  for (const kind of keyKinds) {
    const held = await holder.read(kind);
    if (held) all.push([kind, held]);
  }
  return all;
}

/** `title`: what to call the text. */
function heldOf(kind: KeyKind, text: string, title: string): Omit<HeldKeys, 'inUse'> {
  if (kind === 'issuer') return { ...signingKeyIds(parseKeys(text, title)), signedMs, lines: {} };
  const { fingerprint, next, previous } = parseSshKeySet(text, title);
  const lines = {
    ...(next && { next: next.publicKey }),
    ...(previous && { previous: previous.publicKey }),
  };
  const ids = { current: fingerprint, next: next?.fingerprint, previous: previous?.fingerprint };
  return { ...ids, signedMs: 0, lines };
}

const sshSteps: Record<KeyStep, (file: string) => void> = {
  announce: announceSshKey,
  switch: switchSshKey,
  back: switchSshKeyBack,
  withdraw: withdrawSshKey,
  retire: retireSshKey,
};
