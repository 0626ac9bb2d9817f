/** What is left of a database after the end: whole, and with everything that people were answered or shown. */
import Database from 'better-sqlite3';
import type { AuditRecord } from '../../src/domain/audit/audit.ts';
import { findBreak } from '../../src/domain/audit/audit.ts';
import type { Ledger } from './people.ts';

/** The rows of a query that every database understands. */
export type Query = <Row>(sql: string) => Row[] | Promise<Row[]>;

/** What is missing or broken in a file, a sentence each; the service must not run. */
export async function findFaults(file: string, ledger: Pick<Ledger, 'keys'>): Promise<string[]> {
  const database = new Database(file, { fileMustExist: true });
  try {
    const whole = database.pragma('integrity_check', { simple: true });
    if (whole !== 'ok') return [`the database is damaged: ${whole}`];
    const dangling = database.pragma('foreign_key_check') as unknown[];
    return [
      ...dangling.map((row) => `a reference leads nowhere: ${JSON.stringify(row)}`),
      ...(await findFaultsBy(<Row>(sql: string) => database.prepare<[], Row>(sql).all(), ledger)),
    ];
  } finally {
    database.close();
  }
}

/** What is missing or broken, a sentence each. */
export async function findFaultsBy(query: Query, { keys }: Pick<Ledger, 'keys'>): Promise<string[]> {
  return [
    ...(await findLostKeys(query, keys)),
    ...(await findHalves(query)),
    ...(await findBrokenChain(query)),
  ];
}

async function findLostKeys(query: Query, keys: Ledger['keys']): Promise<string[]> {
  type Row = { id: string; lifecycle_state: string };
  const rows = await query<Row>('select id, lifecycle_state from ssh_keys');
  const states = new Map(rows.map((row) => [row.id, row.lifecycle_state]));
  return [...keys].flatMap(([id, { isRevoked, by }]) => {
    const state = states.get(id);
    if (state === undefined) return [`${id} is missing, and was known by ${by}`];
    return isRevoked && state !== 'revoked' ? [`${id} is ${state}, and was known as revoked by ${by}`] : [];
  });
}

/** Commands of which a part is missing: the entry of the audit trail, the key, or the key set's generation. */
async function findHalves(query: Query): Promise<string[]> {
  const halves = {
    'commands without an entry': `select id from commands where id not in (select command_id from audit_entries where command_id is not null)`,
    'entries without a command': `select command_id from audit_entries where command_id is not null and command_id not in (select id from commands)`,
    'keys without a command': `select id from ssh_keys where created_command_id is not null and created_command_id not in (select id from commands)`,
    'registrations without a key': `select id from commands where operation = 'registerSshKey' and id not in (select created_command_id from ssh_keys)`,
    'keys revoked without a time': `select id from ssh_keys where lifecycle_state = 'revoked' and revoked_at is null`,
  };
  const found = Object.entries(halves).map(async ([name, sql]) => {
    const { length } = await query(sql);
    return length === 0 ? [] : [`${length} ${name}`];
  });
  return (await Promise.all(found)).flat();
}

async function findBrokenChain(query: Query): Promise<string[]> {
  const entries = await query<AuditRecord & { hash: string }>('select * from audit_entries order by seq');
  const broken = findBreak({ seq: 0, hash: '' }, entries);
  return broken ? [`the audit trail breaks at entry ${broken.seq}`] : [];
}
