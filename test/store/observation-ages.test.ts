import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createClock } from '../../src/lib/clock.ts';
import { createObservationAges, readObservation } from '../../src/store/engine/observation-ages.ts';
import { toTime } from '../../src/store/engine/time.ts';

const start = Date.parse('2030-01-01T12:00:00Z');

test('what this process recorded is as old as the time that passed, however the clock was set', () => {
  const host = { now: start, uptime: 0 };
  const ages = createObservationAges(createClock({ now: () => host.now, uptime: () => host.uptime }));
  const at = toTime(host.now);
  ages.recorded('alpha', 'slurm', at);
  host.uptime += 5_000;
  for (const jump of [0, 3_600_000, -3_600_000]) {
    host.now = start + jump;
    assert.equal(ages.msSince('alpha', 'slurm', at), 5_000);
  }
});

test('what another process recorded is as old as the clock says; a time yet to come is no recent one', () => {
  const ages = createObservationAges(createClock({ now: () => start }));
  for (const [ms, expected] of [
    [5_000, 5_000],
    [-60_000, -60_000],
    [-60_001, Number.POSITIVE_INFINITY],
  ] as const)
    assert.equal(ages.msSince('alpha', 'slurm', toTime(start - ms)), expected);
});

test('what another version reports of an observation is one, or nothing', () => {
  const clusterId = '7b6f1f0e-3c39-4a8e-9a55-0d1c2b3a4f50';
  const at = toTime(start);
  const right = { clusterId, side: 'slurm', at };
  assert.deepEqual(readObservation({ ...right, more: 1 }), right);
  for (const odd of [{ side: 'quantum' }, { clusterId: 'x' }, { at: 1 }])
    assert.throws(() => readObservation({ ...right, ...odd }), /is about no observation/);
});
