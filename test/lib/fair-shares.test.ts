import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Claim, FairShares, type Shares } from '../../src/lib/fair-shares.ts';

const usual: Shares = { slots: 4, slotsOfUnknown: 3, waiting: 6, waitingPerSource: 6, waitMs: 60_000 };

/** Shares whose claims write down what becomes of them, each by its source and number. */
function start(shares: Partial<Shares> = {}) {
  const log: string[] = [];
  const all = new FairShares({ ...usual, ...shares });
  const busy = new Set<string>();
  const enter = (name: string, more: Partial<Claim> = {}) => {
    const claim: Claim = {
      source: name.replace(/\d+$/, ''),
      isKnown: name.startsWith('known'),
      most: 4,
      start: () => log.push(`${name} starts`),
      giveWay: () => log.push(`${name} gives way`),
    };
    // Getters stay getters.
    Object.defineProperties(claim, Object.getOwnPropertyDescriptors(more));
    all.enter(claim);
    return claim;
  };
  const idle = (name: string) => enter(name, { isIdle: () => !busy.has(name) });
  const said = () => log.splice(0).join(', ');
  return { all, busy, enter, idle, said };
}

test('strangers never take every slot; a known source has the rest, and waits when that is taken', () => {
  const { enter, said } = start();
  for (const name of ['a1', 'b1', 'c1', 'd1', 'known1', 'known2']) enter(name);
  assert.equal(said(), 'a1 starts, b1 starts, c1 starts, known1 starts');
});

test('what waits comes by turns of its sources, the known ones first, and not by who came first', () => {
  const { all, enter, said } = start({ slots: 1, slotsOfUnknown: 1 });
  let last = enter('a1');
  const started: Claim[] = [];
  const queued = (name: string) =>
    enter(name, {
      start() {
        started.push(last);
        said();
        names.push(name);
      },
    });
  const names: string[] = [];
  const waiting = ['a2', 'a3', 'a4', 'b1', 'known1'].map((name) => [name, queued(name)] as const);
  for (let n = 0; n < 5; n += 1) {
    all.leave(last);
    last = waiting.find(([name]) => name === names.at(-1))?.[1] ?? last;
  }
  assert.deepEqual(names, ['known1', 'a2', 'b1', 'a3', 'a4']);
});

test('a source that becomes known while it waits gets the slots kept for known ones', () => {
  const { all, enter, said } = start();
  const known = new Set<string>();
  const [first] = ['a1', 'b1', 'c1', 'd1', 'd2'].map((name) => {
    const source = name.charAt(0);
    return enter(
      name,
      Object.defineProperty({}, 'isKnown', { get: () => known.has(source), enumerable: true }),
    );
  });
  assert.equal(said(), 'a1 starts, b1 starts, c1 starts');
  known.add('d');
  if (first) all.leave(first);
  assert.equal(said(), 'd1 starts, d2 starts');
});

test('a known source that has a slot is not ahead of the others with its next claims', () => {
  const { all, enter, said } = start({ slots: 2, slotsOfUnknown: 2 });
  const [first] = ['a1', 'known1', 'b1', 'known2', 'known3'].map((name) => enter(name));
  said();
  if (first) all.leave(first);
  assert.equal(said(), 'b1 starts');
});

test('when slots are short, the source with most loses one to a source with fewer, an idle one first, the oldest of these', () => {
  const { busy, idle, said } = start({ slots: 4, slotsOfUnknown: 4 });
  for (const name of ['a1', 'a2', 'b1', 'b2']) idle(name);
  busy.add('a1').add('b1');
  said();
  idle('c1');
  assert.equal(said(), 'a2 gives way, c1 starts');
  // As many as it has itself: the others are no source with more than that.
  idle('c2');
  assert.equal(said(), 'b2 gives way, c2 starts');
  busy.add('c1').add('c2');
  idle('d1');
  assert.equal(said(), 'c1 gives way, d1 starts');
  idle('a2');
  assert.equal(said(), '', 'it waits: no source has more than its own');
});

test('what costs its source something is not displaced by any number that cost nothing, and these keep half the slots', () => {
  const { busy, idle, said } = start({ slots: 4, slotsOfUnknown: 4 });
  idle('honest');
  busy.add('honest');
  for (const name of ['a', 'b', 'c', 'd', 'e', 'f', 'g']) idle(name);
  assert.match(said(), /^honest starts, a starts, b starts, c starts, a gives way, d starts, .*, g starts$/);
  // Those that cost something have half at most, once others come: what has just started is not the only one to go.
  busy.add('e').add('f').add('g');
  idle('h');
  assert.equal(said(), 'honest gives way, h starts');
  idle('i');
  assert.equal(said(), 'e gives way, i starts');
  idle('j');
  assert.equal(said(), 'h gives way, j starts');
});

test('a known source loses nothing to a stranger', () => {
  const { idle, said } = start({ slots: 2, slotsOfUnknown: 2 });
  for (const name of ['known1', 'known2', 'a1']) idle(name);
  assert.equal(said(), 'known1 starts, known2 starts');
});

test('one source waits with so many, and when all that may wait do, the longest queue makes room for a shorter one', () => {
  const { enter, said } = start({ slots: 1, slotsOfUnknown: 1, waiting: 4, waitingPerSource: 3 });
  for (const name of ['a1', 'a2', 'a3', 'a4', 'a5']) enter(name);
  assert.equal(said(), 'a1 starts, a5 gives way');
  enter('b1');
  assert.equal(said(), '');
  enter('c1');
  assert.equal(said(), 'a4 gives way');
  enter('b2');
  assert.equal(said(), 'a3 gives way');
  enter('d1');
  assert.equal(said(), 'b2 gives way');
  enter('a6');
  assert.equal(said(), 'a6 gives way', 'no source has more waiting than its own');
  for (const name of ['known1', 'known2', 'known3']) enter(name);
  assert.equal(said(), 'a2 gives way, b1 gives way, c1 gives way', 'strangers make room for a known source');
  enter('e1');
  assert.equal(said(), 'd1 gives way', 'and a stranger for a stranger only');
});

test('nothing waits for longer than it may, and what has left gives way no more', async () => {
  const { all, enter, said } = start({ slots: 1, slotsOfUnknown: 1, waitMs: 1 });
  const first = enter('a1');
  const gone = enter('a2');
  all.leave(gone);
  let given = () => {};
  const late = new Promise<void>((resolve) => {
    given = resolve;
  });
  enter('a3', { giveWay: () => given() });
  // What ends the wait does not keep a process alive.
  const alive = setInterval(() => {}, 1_000);
  await late;
  clearInterval(alive);
  assert.equal(said(), 'a1 starts');
  all.leave(first);
  all.leave(first);
  enter('b1');
  enter('b2');
  assert.equal(said(), 'b1 starts');
});

test('wider bounds let in what waits, and clearing sends all of it away', () => {
  const { all, enter, said } = start({ slots: 1, slotsOfUnknown: 1 });
  for (const name of ['a1', 'a2', 'b1', 'b2']) enter(name);
  said();
  all.configure({ ...usual, slots: 2, slotsOfUnknown: 2 });
  assert.equal(said(), 'b1 starts');
  all.clear();
  assert.equal(said(), 'a2 gives way, b2 gives way');
});
