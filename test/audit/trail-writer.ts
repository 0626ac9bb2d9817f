/** Writes audit entries and sends them to a webhook until it is killed; when its stdin ends, sends the rest and says how far it is. */
import { writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLogger } from '../../src/lib/log.ts';
import { startAudit } from '../../src/service/audit/index.ts';
import { appendAuditEntry, findLastSeq } from '../../src/store/audit/audit.ts';
import { openStore } from '../../src/store/data-dir/open-store.ts';

const [dataDir = '', url = '', secret = ''] = process.argv.slice(2);
const store = await openStore(dataDir);
const user = await store.read.selectFrom('users').select('id').executeTakeFirstOrThrow();
const webhook = {
  url: new URL(url),
  secrets: [Buffer.from(secret, 'base64')],
  ca: Buffer.from(process.env['TRAIL_CA'] ?? ''),
  skip: new Set<number>(),
  timeoutMs: 5_000,
};
const config = { signMs: 50, file: undefined, syslog: undefined, webhook };
const audit = startAudit(config, { store, dataDir, log: createLogger('silent'), now: Date.now });

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
const positionNow = () => store.read.selectFrom('audit_positions').select('entry_seq').executeTakeFirst();
while ((await positionNow())?.entry_seq !== last) await sleep(20);
await audit.stop();
await store.close();
writeSync(1, JSON.stringify({ last }));
