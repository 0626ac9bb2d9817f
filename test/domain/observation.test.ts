import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Silence, waitingFor, waitingText, withSilence } from '../../src/domain/clusters/cluster.ts';
import { fieldsOf } from '../support/fields.ts';

const first = '2030-01-01T00:00:00.000Z';
const later = '2030-01-01T00:01:00.000Z';
const host = (name: string, listVersion?: number) => ({
  host: name,
  ...(listVersion === undefined ? {} : { listVersion }),
  message: 'it does not answer',
});

test('a host waits since the report that first named it, and anew after one that did not', () => {
  const one = withSilence<Silence>({ waiting: [host('a1', 3)] }, undefined, first);
  assert.deepEqual(one.waiting, [{ ...host('a1', 3), since: first }]);
  const two = withSilence<Silence>(
    { waiting: [host('a1', 3), host('a2')] },
    { report: one, at: first },
    later,
  );
  assert.deepEqual(fieldsOf(two.waiting, 'since'), [first, later]);
  const three = withSilence<Silence>({ waiting: [host('a2')] }, { report: two, at: later }, later);
  const four = withSilence<Silence>({ waiting: [host('a1')] }, { report: three, at: later }, later);
  assert.deepEqual(four.waiting?.[0]?.since, later);
});

test('a silent controller last answered in the last report that it had a part in', () => {
  const one = withSilence<Silence>({ silent: 'controller' }, { report: {}, at: first }, later);
  assert.equal(one.controllerHeardAt, first);
  const two = withSilence<Silence>({ silent: 'all' }, { report: one, at: later }, later);
  assert.equal(two.controllerHeardAt, first);
  assert.equal(withSilence<Silence>({}, { report: two, at: later }, later).controllerHeardAt, undefined);
});

test('a change waits for hosts with an older version of the list, or an unknown one', () => {
  const waiting = [host('a1'), host('a2', 3), host('a3', 4)];
  const names = (version: number) => waitingFor(version, { waiting }).map((one) => one.host);
  assert.deepEqual([names(5), names(4), names(1), names(0)], [['a1', 'a2', 'a3'], ['a1', 'a2'], ['a1'], []]);
  assert.deepEqual(waitingFor(4, {}), []);
});

test('hosts that wait are named in words, the first of many', () => {
  assert.equal(waitingText([]), undefined);
  assert.equal(
    waitingText([{ ...host('a1'), since: first }]),
    `Hosts that have not confirmed it: a1 since ${first} (it does not answer).`,
  );
  const many = Array.from({ length: 7 }, (_, index) => host(`a${index}`));
  assert.match(waitingText(many) ?? '', /a4 \(it does not answer\), and 2 more\.$/);
});
