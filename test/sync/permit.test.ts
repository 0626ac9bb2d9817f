/** When people's Kubernetes permissions are looked at: with every change and every expiry, also while work is under way. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Lab } from '../../src/domain/lab.ts';
import { createLogger } from '../../src/log.ts';
import { createGrant } from '../../src/store/grants.ts';
import { type Driver, startSyncLoop } from '../../src/sync/index.ts';
import { eventually } from '../support/app.ts';
import { openTestStore, userId } from '../support/store.ts';

const id = '9d6f1f0e-3c39-4a8e-9a55-0d1c2b3a4f50';
const lab: Lab = {
  organizations: [
    { slug: 'x', name: 'X', members: [{ email: 'ada@x.example', role: 'owner', username: 'ada' }] },
  ],
  clusters: [
    {
      name: 'gamma',
      id,
      organization: 'x',
      scheduler: 'kubernetes',
      simulated: { computeNodes: 0, gpusPerNode: 0 },
    },
  ],
};

/** A loop whose intervals do not come, over a cluster whose work ends when it is told to. */
async function start(work: Promise<void>) {
  const house = await openTestStore(lab);
  const seen = { permits: [] as number[], applied: 0 };
  const driver: Driver = {
    async permit() {
      seen.permits.push(Date.now());
    },
    observe: async () => ({
      manifestGeneration: 0,
      desiredGeneration: seen.applied,
      controlPlaneReady: true,
      runningJobs: [],
      loginNodes: [],
      accounts: [],
      failure: null,
    }),
    async apply(manifest) {
      await work;
      seen.applied = manifest.desiredGeneration;
    },
    release: async () => {},
    close: async () => {},
  };
  const loop = await startSyncLoop({
    store: house.store,
    createDriver: async () => driver,
    intervalMs: 600_000,
    log: createLogger('silent'),
    now: Date.now,
  });
  const user_id = await userId(house.store, 'ada@x.example');
  return {
    seen,
    grant: (expiresAt: number | null) =>
      house.store.write((tx) =>
        createGrant(
          tx,
          {
            resource_id: id,
            user_id,
            relation: 'kubernetes.viewer',
            scope: null,
            role_id: null,
            expires_at: expiresAt === null ? null : new Date(expiresAt).toISOString(),
            granted_by: user_id,
          },
          Date.now(),
        ),
      ),
    async [Symbol.asyncDispose]() {
      await loop.stop();
      await house[Symbol.asyncDispose]();
    },
  };
}

/** Until nothing has been looked at for a while. */
async function quiet(seen: { permits: number[] }): Promise<number> {
  await eventually(
    async () => Date.now() - (seen.permits.at(-1) ?? Date.now()),
    (since) => since > 300,
  );
  return seen.permits.length;
}

for (const [when, work] of [
  ['', Promise.resolve()],
  [', while something that takes long is applied there', new Promise<void>(() => {})],
] as const) {
  test(`a grant is looked at when it is made, and when it ends by itself${when}`, async () => {
    // Work that does not end by itself ends with the test.
    const over = Promise.withResolvers<void>();
    await using house = await start(Promise.race([work, over.promise]));
    try {
      const { seen } = house;
      const before = await quiet(seen);
      await house.grant(null);
      await eventually(
        async () => seen.permits.length,
        (count) => count > before,
      );
      const settled = await quiet(seen);
      const expiresAt = Date.now() + 1500;
      await house.grant(expiresAt);
      await eventually(
        async () => seen.permits.filter((at) => at >= expiresAt).length,
        (count) => count > 0,
      );
      assert.ok(seen.permits.length > settled);
      const after = await quiet(seen);
      assert.ok(after - settled <= 5, `${after - settled} looks for two causes`);
    } finally {
      over.resolve();
    }
  });
}
