import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { yieldToEventLoop } from '../../src/lib/event-loop.ts';

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
