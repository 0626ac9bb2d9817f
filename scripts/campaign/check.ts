/** What is left of a database after the end: whole, and with everything that people were answered or shown. */
import Database from 'better-sqlite3';
import { findBreak } from '../../src/domain/audit.ts';
import type { AuditRecord } from '../../src/domain/audit-text.ts';
import type { Ledger } from './people.ts';

/** What is missing or broken, a sentence each; the service must not run. */
export function findFaults(file: string, { keys }: Pick<Ledger, 'keys'>): string[] {
  const database = new Database(file, { fileMustExist: true });
  try {
    const whole = database.pragma('integrity_check', { simple: true });
    if (whole !== 'ok') return [`the database is damaged: ${whole}`];
    const dangling = database.pragma('foreign_key_check') as unknown[];
    return [
      ...dangling.map((row) => `a reference leads nowhere: ${JSON.stringify(row)}`),
      ...findLostKeys(database, keys),
      ...findHalves(database),
      ...findBrokenChain(database),
    ];
  } finally {
    database.close();
  }
}

function findLostKeys(database: Database.Database, keys: Ledger['keys']): string[] {
  const rows = database.prepare<[], [string, string]>('select id, lifecycle_state from ssh_keys').raw().all();
  const states = new Map(rows);
  return [...keys].flatMap(([id, { isRevoked, by }]) => {
    const state = states.get(id);
    if (state === undefined) return [`${id} is missing, and was known by ${by}`];
    return isRevoked && state !== 'revoked' ? [`${id} is ${state}, and was known as revoked by ${by}`] : [];
  });
}

/** Commands of which a part is missing: the entry of the audit trail, the key, or the key set's generation. */
function findHalves(database: Database.Database): string[] {
  const halves = {
    'commands without an entry': `select id from commands where id not in (select command_id from audit_entries where command_id is not null)`,
    'entries without a command': `select command_id from audit_entries where command_id is not null and command_id not in (select id from commands)`,
    'keys without a command': `select id from ssh_keys where created_command_id is not null and created_command_id not in (select id from commands)`,
    'registrations without a key': `select id from commands where operation = 'registerSshKey' and id not in (select created_command_id from ssh_keys)`,
    'keys revoked without a time': `select id from ssh_keys where lifecycle_state = 'revoked' and revoked_at is null`,
  };
  return Object.entries(halves).flatMap(([name, query]) => {
    const { length } = database.prepare(query).all();
    return length === 0 ? [] : [`${length} ${name}`];
  });
}

function findBrokenChain(database: Database.Database): string[] {
  const entries = database
    .prepare<[], AuditRecord & { hash: string }>('select * from audit_entries order by seq')
    .all();
  const broken = findBreak({ seq: 0, hash: '' }, entries);
  return broken ? [`the audit trail breaks at entry ${broken.seq}`] : [];
}
