/** A store whose trail a test fills, and what went to the log. */
import { join } from 'node:path';
import Database from 'better-sqlite3';
import type { AuditRecord } from '../../src/domain/audit/audit.ts';
import { auditHash } from '../../src/domain/audit/audit.ts';
import type { Logger } from '../../src/lib/log.ts';
import { createAudit } from '../../src/service/audit/index.ts';
import { appendAuditEntry } from '../../src/store/audit/audit.ts';
import type { Store } from '../../src/store/engine/index.ts';
import { systemUserId } from '../../src/store/people/people.ts';
import { physics } from '../support/app.ts';
import { auditKeys } from '../support/service-keys.ts';
import { openTestStore, userId } from '../support/store.ts';

/** A service that is alone, and so keeps the trail. */
export function startAudit(...[config, deps]: Parameters<typeof createAudit>) {
  const audit = createAudit(config, deps);
  const stop = audit.keep(deps.store);
  return { ...audit, stop: () => stop(true) };
}

export async function openTrail() {
  const opened = await openTestStore(physics);
  const actor = await userId(opened.store, 'root@physics.example');
  const lines: { level: string; event: string; fields: object }[] = [];
  const at = (level: string) => (event: string, fields: object) => void lines.push({ level, event, fields });
  const log: Logger = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
  return {
    store: opened.store,
    dataDir: opened.dataDir,
    keys: auditKeys(opened.dataDir),
    log,
    lines,
    /** The events that were logged, above debug. */
    events: () => lines.filter(({ level }) => level !== 'debug').map(({ event }) => event),
    add: (...targets: string[]) => addEntries(opened.store, actor, targets),
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  };
}

async function addEntries(store: Store, actor: string, targets: string[]): Promise<void> {
  await store.write(async (tx) => {
    for (const target of targets)
      await appendAuditEntry(tx, {
        at: '2026-01-01T00:00:00.000Z',
        actorUserId: actor,
        operation: 'test',
        target,
        reason: 'Zoë\u202e',
        sourceAddress: '127.0.0.1',
        result: 'done',
      });
  });
}

/** What somebody with the database can do: change an entry, and compute every hash from there on again. */
export async function rewrite(dataDir: string, from: number): Promise<void> {
  // A service in this process cannot end its own write while this one waits for it.
  const file = new Database(join(dataDir, 'andromeda.db'), { timeout: 0 });
  for (;;) {
    try {
      file.exec('begin immediate');
      break;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
  file.exec('drop trigger audit_entries_stay');
  const rows = file.prepare('select * from audit_entries order by seq').all() as never[];
  const update = file.prepare('update audit_entries set reason = ?, hash = ? where seq = ?');
  let previous = '';
  for (const row of rows as { seq: number; reason: string; hash: string }[]) {
    if (row.seq >= from) {
      if (row.seq === from) row.reason = 'forged';
      row.hash = auditHash(previous, row as never);
      update.run(row.reason, row.hash, row.seq);
    }
    previous = row.hash;
  }
  file.exec('commit');
  file.close();
}

/** An entry behind the last one, `ahead` numbers on, whose hash is over a text that no database keeps. */
export async function addBroken(store: Store, ahead: number, target: string): Promise<number> {
  return store.write(async ({ db }) => {
    const last = await db
      .selectFrom('audit_entries')
      .select(['seq', 'hash'])
      .orderBy('seq', 'desc')
      .limit(1)
      .executeTakeFirstOrThrow();
    const record: AuditRecord = {
      seq: last.seq + ahead,
      at: '2026-01-01T00:00:00.000Z',
      actor_user_id: systemUserId,
      command_id: null,
      operation: 'test',
      target,
      organization_id: null,
      cluster_id: null,
      subject_user_id: null,
      reason: 'by Ada',
      source_address: '',
      result: 'done',
      details: '',
    };
    const row = { ...record, hash: auditHash(last.hash, record), redaction: null };
    await db.insertInto('audit_entries').values(row).execute();
    return record.seq;
  });
}
