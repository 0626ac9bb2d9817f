import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { startRounds } from '../../src/lib/rounds.ts';

const never = { everyMs: 3_600_000, onFault: assert.fail };

test('rounds never overlap: what wakes one that runs has one more follow it', async () => {
  let running = 0;
  let done = 0;
  const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const rounds = startRounds(async () => {
    running += 1;
    assert.equal(running, 1);
    await gates[done]?.promise;
    running -= 1;
    done += 1;
  }, never);
  for (let times = 0; times < 5; times += 1) rounds.wake();
  gates[0]?.resolve();
  gates[1]?.resolve();
  while (done < 2) await sleep(1);
  await rounds.stop();
  assert.equal(done, 2);
});

test('a round that fails is followed by the next one, and one says itself when that comes', async () => {
  const faults: unknown[] = [];
  const ended = Promise.withResolvers<void>();
  let count = 0;
  const rounds = startRounds(
    async () => {
      count += 1;
      if (count === 1) throw new Error('the first');
      if (count === 2) return 1;
      ended.resolve();
    },
    { everyMs: 1, firstMs: 1, onFault: (error) => faults.push((error as Error).message) },
  );
  await ended.promise;
  await rounds.stop();
  assert.deepEqual(faults, ['the first']);
});

test('a stop waits for the round under way, which sees it coming, and none follows', async () => {
  let count = 0;
  let isEnded = false;
  const rounds = startRounds(async (stopping) => {
    count += 1;
    await new Promise((resolve) => stopping.addEventListener('abort', resolve));
    isEnded = true;
  }, never);
  rounds.wake();
  await rounds.stop();
  assert.ok(isEnded);
  rounds.wake();
  await sleep(5);
  assert.equal(count, 1);
});
