/** Storage of the service's own keys: files in the data directory, or the database that several servers share. */
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
  /** The stored keys, or else a new one made by `make`. */
  findOrMake(kind: KeyKind, make: () => string | Promise<string>): Promise<KeySet<string>>;
  /** Replaces the stored keys by `change` of them, which gets the time of the store's own clock. */
  change(kind: KeyKind, change: (set: KeySet<string>, now: number) => KeySet<string>): Promise<void>;
  /** The name of the store's entry, as the subject of a sentence. */
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

/** Keys in the database; where it has none, one in a file of this server is copied into it. */
export function sharedKeys(dataDir: string, store: Store, secrets: Secrets, log?: Logger): KeyStore {
  const title = (kind: KeyKind) => secretTitle(serviceSecrets[kind].name);
  return {
    async find(kind) {
      const text = await secrets.find(serviceSecrets[kind].name);
      return text === undefined ? undefined : readKeySet(text, title(kind));
    },
    async findOrMake(kind, make) {
      const { name } = serviceSecrets[kind];
      const own = readKeyFiles(dataDir, kind);
      const text = await secrets.findOrAdd(name, async () => keySetText(own ?? { key: await make() }));
      const set = readKeySet(text, title(kind));
      if (own && ![set.key, set.next?.key].includes(own.key)) {
        const message = `${keyFileOf(dataDir, kind)} is not used: the secret ${name} in the database is another.`;
        log?.warn('secrets.differ', { name, file: keyFileOf(dataDir, kind), message });
      }
      return set;
    },
    async change(kind, change) {
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
