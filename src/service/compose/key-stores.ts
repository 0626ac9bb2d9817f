/** Where the service's own keys are kept: as files of the data directory, or in the database that several servers share. */
import { existsSync } from 'node:fs';
import {
  type KeyKind,
  type KeySet,
  keySetText,
  readKeySet,
  secretsTopic,
  secretTitle,
  serviceSecrets,
} from '../../domain/key-rotation.ts';
import type { Logger } from '../../lib/log.ts';
import { keyFileOf, readKeyFiles, writeKeyFiles } from '../../store/data-dir/key-files.ts';
import { lockKeys } from '../../store/data-dir/lock.ts';
import { databaseTime } from '../../store/engine/engine.ts';
import type { Store } from '../../store/engine/index.ts';
import type { Secrets } from '../../store/servers/secrets.ts';

export interface KeyStore {
  /** Undefined where there never was one. */
  find(kind: KeyKind): Promise<KeySet<string> | undefined>;
  /** Those that are there, or else the one that `make` made. */
  findOrMake(kind: KeyKind, make: () => string | Promise<string>): Promise<KeySet<string>>;
  /** Puts others in their place, made of those that are there, at the time by the clock that counts there. */
  change(kind: KeyKind, change: (set: KeySet<string>, now: number) => KeySet<string>): Promise<void>;
  /** What to call them, as the subject of a sentence. */
  title(kind: KeyKind): string;
}

export function keysInFiles(dataDir: string, now: () => number): KeyStore {
  return {
    find: async (kind) => readKeyFiles(dataDir, kind),
    async findOrMake(kind, make) {
      const found = readKeyFiles(dataDir, kind);
      if (found) return found;
      const set = { key: await make() };
      writeKeyFiles(dataDir, kind, set);
      return set;
    },
    async change(kind, change) {
      const unlock = lockKeys(dataDir);
      try {
        const before = readKeyFiles(dataDir, kind);
        const after = before && change(before, now());
        if (after && after !== before) writeKeyFiles(dataDir, kind, after);
      } finally {
        unlock();
      }
    },
    title: (kind) => keyFileOf(dataDir, kind),
  };
}

/** A key that is a file of this server wins, and is put into the database where there is none, so that the other servers have it. */
export function sharedKeys(dataDir: string, store: Store, secrets: Secrets, log?: Logger): KeyStore {
  const files = keysInFiles(dataDir, Date.now);
  const isFile = (kind: KeyKind) => existsSync(keyFileOf(dataDir, kind));
  const title = (kind: KeyKind) =>
    isFile(kind) ? files.title(kind) : secretTitle(serviceSecrets[kind].name);
  return {
    async find(kind) {
      if (isFile(kind)) return files.find(kind);
      const text = await secrets.find(serviceSecrets[kind].name);
      return text === undefined ? undefined : readKeySet(text, title(kind));
    },
    async findOrMake(kind, make) {
      const { name } = serviceSecrets[kind];
      const own = await files.find(kind);
      const text = await secrets.findOrAdd(name, async () => keySetText(own ?? { key: await make() }));
      if (!own) return readKeySet(text, title(kind));
      if (text !== keySetText(own))
        log?.warn('secrets.differ', {
          name,
          file: title(kind),
          message: `${title(kind)} is used, and the secret ${name} in the database is another: servers without that file use that one.`,
        });
      return own;
    },
    async change(kind, change) {
      if (isFile(kind)) return files.change(kind, change);
      const { name } = serviceSecrets[kind];
      const now = await databaseTime(store.read);
      let isNews = false;
      await secrets.change(name, (text = '') => {
        const before = readKeySet(text, title(kind));
        const after = change(before, now);
        isNews = after !== before;
        return isNews ? keySetText(after) : undefined;
      });
      // Otherwise a server whose clock is ahead would wake all of them again and again.
      if (isNews) await store.messages.send(secretsTopic, { name });
    },
    title,
  };
}
