/** What the tests of this folder share. */

import type { LabCluster, SimulatedSettings } from '../../src/domain/clusters/lab.ts';
import { updateRows } from '../../src/store/engine/rows.ts';
import { eventually, type TestApp } from '../support/app.ts';
import { requireRow } from '../support/store.ts';

/** A simulated cluster of the physicists; the number in front makes the order of the IDs. */
export const labCluster = (
  name: string,
  n: number,
  simulated: Partial<SimulatedSettings> = {},
  more: Partial<LabCluster> = {},
): LabCluster & { id: string } => ({
  ...{ name, organization: 'physics', scheduler: 'kubernetes' },
  simulated: { computeNodes: 1, gpusPerNode: 1, applyMs: 0, ...simulated },
  ...more,
  id: `${n.toString(16).padStart(8, '0')}-3c39-4a8e-9a55-0d1c2b3a4f50`,
});

/** Makes a simulated cluster otherwise while it runs; a setting that is undefined goes back to its default. */
export async function setSimulated(
  { app }: TestApp,
  clusterId: string,
  change: { [Key in keyof SimulatedSettings]?: SimulatedSettings[Key] | undefined },
): Promise<void> {
  await app.store.write(async ({ db, changed }) => {
    const { driver } = await requireRow(db, 'clusters', { id: clusterId });
    const { simulated: before, ...rest } = JSON.parse(driver);
    const simulated = { ...before, ...change };
    await updateRows(db, 'clusters', { id: clusterId }, { driver: JSON.stringify({ ...rest, simulated }) });
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
    await updateRows(
      db,
      'observations',
      { cluster_id: clusterId, side },
      { report: JSON.stringify({ ...JSON.parse(report), ...change }) },
    );
  });
}

/** Two active purchases of Ceph, of `bytes` and one more, and others that count for nothing. */
export async function addPurchases({ app }: TestApp, clusterId: string, bytes: number): Promise<void> {
  await app.store.write(async ({ db }) => {
    const { organization_id } = await requireRow(db, 'clusters', { id: clusterId });
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
