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
