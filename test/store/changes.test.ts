/** What servers of one database announce to each other. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Change, readChanges } from '../../src/store/engine/changes.ts';

test('a server reads what another one announces', () => {
  const changes: Change[] = [
    { kind: 'person', userId: 'u' },
    { kind: 'person', userId: 'u', permissionEnd: '2030-01-01T00:00:00.000Z' },
    { kind: 'organization', organizationId: 'o' },
    { kind: 'cluster', clusterId: 'c' },
    { kind: 'report', clusterId: 'c' },
    { kind: 'browsers', userId: 'u' },
    { kind: 'sessions', userId: 'u' },
    { kind: 'requests', userId: 'u', organizationId: 'o' },
    { kind: 'service' },
    { kind: 'closing', sessionId: 's' },
    { kind: 'everything' },
    { kind: 'everything', wentBack: true },
    { kind: 'person', userId: 'u', commandId: 'command_1' },
  ];
  assert.deepEqual(readChanges(JSON.parse(JSON.stringify(changes))), changes);
});

test('what another version announces is read as far as it is known; what cannot be read counts as everything', () => {
  const all = [{ kind: 'everything' }];
  const told: [unknown, unknown][] = [
    [[{ kind: 'person', userId: 'u', more: 1 }], [{ kind: 'person', userId: 'u' }]],
    [[{ kind: 'room', roomId: 'r' }, { kind: 'service' }], [{ kind: 'service' }]],
    [[{ kind: 'room' }], []],
    [[{ kind: 'requests', userId: 'u' }], all],
    [[{ kind: 'person', userId: 7 }], all],
    [[{ kind: 'everything', wentBack: 'yes' }], all],
    [[{ kind: 'toString' }], []],
    [[{ userId: 'u' }], all],
    ...[null, 7, 'x', {}, [null], ['x'], [[]]].map((odd): [unknown, unknown] => [odd, all]),
  ];
  for (const [odd, expected] of told) assert.deepEqual(readChanges(odd), expected, JSON.stringify(odd));
});
