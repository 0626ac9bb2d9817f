/** Writes audit entries and copies them to a file until it is killed; when its stdin ends, copies the rest and says how far it is. */
import { writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLogger } from '../../src/lib/log.ts';
import { appendAuditEntry, findLastSeq } from '../../src/store/audit/audit.ts';
import { openStore } from '../../src/store/data-dir/open-store.ts';
import { auditKeys } from '../support/service-keys.ts';
import { startAudit } from './support.ts';

const [dataDir = '', file] = process.argv.slice(2);
const store = await openStore(dataDir);
const user = await store.read.selectFrom('users').select('id').executeTakeFirstOrThrow();
const config = { signMs: 50, file, group: undefined };
const audit = startAudit(config, {
  store,
  keys: auditKeys(dataDir),
  log: createLogger('silent'),
  now: Date.now,
});

let isEnding = false;
process.stdin.on('end', () => {
  isEnding = true;
});
process.stdin.resume();

async function write(flush: boolean): Promise<void> {
  while (!isEnding) {
    await store.write(
      (tx) =>
        appendAuditEntry(tx, {
          actorUserId: user.id,
          operation: 'test',
          target: 't',
          reason: '',
          result: 'done',
        }),
      { flush },
    );
    await sleep(5);
  }
}

await Promise.all([write(true), write(false)]);
const last = await findLastSeq(store.read);
await audit.stop();
await store.close();
writeSync(1, `${last}`);
