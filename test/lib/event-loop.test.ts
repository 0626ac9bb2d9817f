import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { yieldToEventLoop } from '../../src/lib/event-loop.ts';
import { startRounds } from '../../src/lib/rounds.ts';

/** The clock is the test's: on a busy machine, any two lines are as far apart as anyone may keep the thread. */
let now = 1_000;
mock.method(performance, 'now', () => now);

/** Keeps the thread to itself for longer than anyone may. */
function hog(): void {
  now += 5;
}

test('no one waits in a turn that has only begun', async () => {
  await nextTurn();
  for (let i = 0; i < 10; i++) assert.equal(yieldToEventLoop(), undefined);
});

test('who kept the turn for long waits, and everybody else comes first', async () => {
  await nextTurn();
  assert.equal(yieldToEventLoop(), undefined);
  hog();
  const events: string[] = [];
  setImmediate(() => events.push('somebody else'));
  const way = yieldToEventLoop();
  assert.ok(way);
  await way;
  events.push('on again');
  assert.deepEqual(events, ['somebody else', 'on again']);
  assert.equal(yieldToEventLoop(), undefined, 'a new turn has begun');
});

test('many who waited do not make one long turn together', async () => {
  await nextTurn();
  yieldToEventLoop();
  hog();
  let turns = 0;
  let going = true;
  const count = () => {
    turns++;
    if (going) setImmediate(count);
  };
  setImmediate(count);
  await Promise.all(
    Array.from({ length: 5 }, async () => {
      await yieldToEventLoop();
      hog();
    }),
  );
  going = false;
  assert.ok(turns >= 5, `${turns} turns`);
});

test('one that works on and on does not keep others from their turn', async () => {
  await nextTurn();
  let round = 0;
  let otherGotIt: number | undefined;
  for (; round < 30; round++) {
    hog();
    const way = yieldToEventLoop();
    if (round === 3) {
      // Comes when the other one waits already, and everything that it asks takes no time.
      void (async () => {
        for (let i = 0; i < 3; i++) await yieldToEventLoop();
        otherGotIt = round;
      })();
    }
    await way;
  }
  assert.ok(otherGotIt !== undefined && otherGotIt <= 6, `in round ${otherGotIt}`);
});

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
