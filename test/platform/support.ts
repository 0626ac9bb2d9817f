/** What the tests of this folder share. */
import assert from 'node:assert/strict';
import type { SimulatedSettings } from '../../src/domain/clusters/lab.ts';
import { eventually, type Reply, type TestApp } from '../support/app.ts';

/** A refusal has a status, a code, the three fields of the contract and nothing else. */
export function refused(reply: Reply, status: number, code: string, message?: RegExp): void {
  assert.deepEqual([reply.status, reply.body.code, reply.body.retryable], [status, code, false]);
  assert.deepEqual(Object.keys(reply.body).sort(), ['code', 'message', 'retryable']);
  if (message) assert.match(reply.body.message, message);
}

/** Makes a simulated cluster otherwise while it runs; a setting that is undefined goes back to its default. */
export async function setSimulated(
  { app }: TestApp,
  clusterId: string,
  change: { [Key in keyof SimulatedSettings]?: SimulatedSettings[Key] | undefined },
): Promise<void> {
  await app.store.write(async ({ db, changed }) => {
    const { driver } = await db
      .selectFrom('clusters')
      .select('driver')
      .where('id', '=', clusterId)
      .executeTakeFirstOrThrow();
    const { simulated: before, ...rest } = JSON.parse(driver);
    const simulated = { ...before, ...change };
    await db
      .updateTable('clusters')
      .set({ driver: JSON.stringify({ ...rest, simulated }) })
      .where('id', '=', clusterId)
      .execute();
    changed({ kind: 'cluster', clusterId });
  });
}

/** Has a cluster stop reporting, for good: it is asked again ever more rarely. Its last report is of before. */
export async function silence(service: TestApp, clusterId: string): Promise<void> {
  await setSimulated(service, clusterId, { silent: true });
  const observed = () =>
    service.app.store.read
      .selectFrom('observations')
      .select('observed_at')
      .where('cluster_id', '=', clusterId)
      .executeTakeFirst();
  // A pass that had begun may still record what it saw.
  let last = '';
  await eventually(observed, (row) => {
    const same = row !== undefined && row.observed_at === last;
    last = row?.observed_at ?? '';
    return same;
  });
  await new Promise((done) => setTimeout(done, 200));
}

export async function setCluster(service: TestApp, clusterId: string, change: object): Promise<void> {
  await service.app.store.write(async ({ db }) => {
    await db.updateTable('clusters').set(change).where('id', '=', clusterId).execute();
  });
}

/** A token for a person by email, made anew since the clock moves. */
export function tokenFor(service: TestApp, email: string): Promise<string> {
  return service.issuer.token(email, { email, sub: email });
}

/** Makes the last report of a cluster that was silenced another one. */
export async function changeReport(
  { app }: TestApp,
  clusterId: string,
  change: object,
  side = 'slurm' as 'slurm' | 'kubernetes',
): Promise<void> {
  await app.store.write(async ({ db }) => {
    const rows = db.selectFrom('observations').select('report').where('cluster_id', '=', clusterId);
    const { report } = await rows.where('side', '=', side).executeTakeFirstOrThrow();
    await db
      .updateTable('observations')
      .set({ report: JSON.stringify({ ...JSON.parse(report), ...change }) })
      .where('cluster_id', '=', clusterId)
      .where('side', '=', side)
      .execute();
  });
}

/** Two active purchases of Ceph, of `bytes` and one more, and others that count for nothing. */
export async function addPurchases({ app }: TestApp, clusterId: string, bytes: number): Promise<void> {
  await app.store.write(async ({ db }) => {
    const { organization_id } = await db
      .selectFrom('clusters')
      .select('organization_id')
      .where('id', '=', clusterId)
      .executeTakeFirstOrThrow();
    const { id: created_by_user_id } = await db.selectFrom('users').select('id').executeTakeFirstOrThrow();
    const created_at = new Date().toISOString();
    for (const [n, state] of (['active', 'active', 'requested', 'declined'] as const).entries()) {
      const common = {
        ...{ organization_id, cluster_id: clusterId, storage_type: 'ceph' as const, bytes: bytes + n },
        ...{ created_by_user_id, created_at },
      };
      const quote = { id: `quote_${n}`, current_bytes: 0, expires_at: created_at, ...common };
      await db.insertInto('storage_quotes').values(quote).execute();
      const undecided = { decided_by_user_id: null, decided_at: null };
      const purchase = { id: `purchase_${n}`, quote_id: quote.id, state, ...undecided, ...common };
      await db.insertInto('storage_purchases').values(purchase).execute();
    }
  });
}
