/** A data directory, a place for its backups, and a service that makes them. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Logger } from '../../src/lib/log.ts';
import { startBackups } from '../../src/service/backup/index.ts';
import { openStore } from '../../src/store/data-dir/open-store.ts';
import { eventually } from '../support/app.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { placeDatabase } from '../support/template.ts';

export const hour = 3_600_000;

export async function installation() {
  const own = temporaryDirectory();
  const at = (name: string) => join(own.path, name);
  const [dataDir, place] = [at('data'), at('place')];
  await placeDatabase(dataDir);
  await (await openStore(dataDir)).close();
  mkdirSync(place);
  return {
    path: own.path,
    at,
    dataDir,
    place,
    /** Gathers what it logs. `schedule` undefined: no backups are wanted. */
    start(schedule: Schedule | undefined) {
      const { after, to = place, every = hour, now = Date.now } = schedule ?? {};
      const logged: Record<string, unknown>[] = [];
      const add = (event: string, fields: object) => logged.push({ event, ...fields });
      const log = { debug: add, info: add, warn: add, error: add } as unknown as Logger;
      const settings = schedule && { everyMs: every, keep: 3, to, after };
      const times = { checkMs: 20, startMs: 1, retryMs: 60_000 };
      const stop = startBackups({ settings, dataDir, version: '9', elsewhere: () => [], log, now, times });
      const next = (event: string) =>
        eventually(
          async () => logged.find((one) => one['event'] === event),
          (found) => found !== undefined,
        );
      return { logged, stop, next };
    },
    [Symbol.dispose]: () => own[Symbol.dispose](),
  };
}

interface Schedule {
  after?: string;
  to?: string;
  every?: number;
  now?: () => number;
}
