/** The audit trail as sentences. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import {
  actionLabel,
  auditOperations,
  type NamedEntry,
  sentenceText,
} from '../../src/domain/audit/sentence.ts';

const root = join(import.meta.dirname, '../..');

const entry: NamedEntry = {
  operation: 'setMemberPermissions',
  target: 'org_1/user_bob',
  reason: '',
  result: 'done',
  details: 'permissions none → clusters.ssh',
  actor_user_id: 'user_ada',
  actor_email: 'ada@physics.example',
  actor_name: 'Ada Lovelace',
  subject_user_id: 'user_bob',
  subject_email: 'bob@physics.example',
  subject_name: 'Bob Kahn',
};
const alpha = { cluster_id: 'c', cluster_name: 'alpha' };
const physics = { organization_id: 'org_1', organization_name: 'Physics' };
const { subject_email, subject_name, subject_user_id, ...ofNoSubject } = entry;
const set = (details: string, more: Partial<NamedEntry> = {}): NamedEntry => ({ ...entry, details, ...more });

test('an entry says who did what to whom on which cluster, and why', () => {
  const on = (operation: string, more: Partial<NamedEntry> = {}) => set('', { operation, ...alpha, ...more });
  const byBob = { actor_name: 'Bob Kahn' };
  const until = '2030-01-01 09:00 UTC';
  const named = {
    ...ofNoSubject,
    operation: 'addMember',
    target: 'org_1/cy@x.example',
    details: 'role admin',
  };
  const rows: [NamedEntry, string][] = [
    [
      set('permissions none → clusters.ssh', {
        operation: 'approveAccessRequest',
        reason: 'joins',
        ...alpha,
      }),
      'Ada Lovelace gave Bob Kahn SSH on alpha, as requested: joins',
    ],
    [
      set(`permissions clusters.read → clusters.read, clusters.ssh.admin until ${until}`, physics),
      `Ada Lovelace gave Bob Kahn SSH admin until ${until} in Physics`,
    ],
    [
      set('permissions clusters.kubernetes, clusters.ssh → none'),
      'Ada Lovelace took Kubernetes and SSH from Bob Kahn',
    ],
    [
      set(`permissions clusters.ssh until ${until} → clusters.ssh`),
      'Ada Lovelace gave Bob Kahn SSH without an end',
    ],
    [
      set('permissions clusters.ssh → members.manage'),
      'Ada Lovelace gave Bob Kahn Manage members and took SSH',
    ],
    [set('permissions clusters.ssh → clusters.ssh'), 'Ada Lovelace set the permissions of Bob Kahn'],
    [
      set('You hold none of this.', { reason: 'joins', result: 'refused: forbidden' }),
      'Ada Lovelace tried to set the permissions of Bob Kahn: joins – refused: You hold none of this.',
    ],
    [{ ...named, ...physics }, 'Ada Lovelace added cy@x.example to Physics as admin'],
    [
      on('ssh.login.refused', {
        result: 'refused: no_access',
        reason: 'No access to this cluster.',
        ...byBob,
      }),
      'Bob Kahn tried to log in over SSH to alpha – refused: No access to this cluster.',
    ],
    [
      on('ssh.session.closed', { reason: 'logout', ...byBob }),
      'Bob Kahn’s SSH session on alpha ended: logout',
    ],
    [
      set('staff keys → staff.read', { operation: 'operatorSetStaffKeys', subject_user_id: 'user_ada' }),
      'Ada Lovelace set the staff keys of themselves to staff.read',
    ],
    [
      on('operatorCreateGrant', { details: 'kubernetes.viewer to bob@physics.example' }),
      'Ada Lovelace gave Bob Kahn kubernetes.viewer on alpha',
    ],
    [set('', { operation: 'ofTomorrow', target: 'x' }), 'Ada Lovelace did ofTomorrow on x'],
  ];
  for (const [one, sentence] of rows) assert.equal(sentenceText(one), sentence);
});

test('every operation that code can write to the trail has a sentence, and none has more than that', () => {
  const written = new Set(operationsInSource());
  for (const kind of ['person', 'organization', 'member', 'team', 'cluster', 'grant'])
    for (const action of ['create', 'update', 'remove']) written.add(`operatorApplyLab.${kind}.${action}`);
  assert.deepEqual([...written].sort(), auditOperations().sort());
});

test('every operation has a label, without a placeholder or a gap', () => {
  for (const operation of auditOperations()) {
    const label = actionLabel(operation);
    assert.match(label, /^[A-Z]/, label);
    assert.doesNotMatch(label, /[{}[\]|…]| {2}| $/, label);
    const sentence = sentenceText({
      ...entry,
      operation,
      details: 'a → b',
      target: 't',
      reason: '',
      ...alpha,
    });
    assert.doesNotMatch(sentence, /[{}[\]|…]| {2}| $/, sentence);
  }
});

/** By the name that a command or its type has, or that `writes()` and those that call it are given. */
function operationsInSource(): string[] {
  const files = globSync('src/{api/business,api/platform,api/identity,gateway,service,store}/**/*.ts', {
    cwd: root,
    exclude: ['**/metrics/**'],
  });
  const text = files.map((file) => readFileSync(join(root, file), 'utf8')).join('\n');
  const named = [...text.matchAll(/\boperation(?:: | = )((?:'[\w.]+'(?: \| )?)+)/g)].flatMap(
    ([, names = '']) => [...names.matchAll(/'([\w.]+)'/g)].map(([, name = '']) => name),
  );
  const made = [...text.matchAll(/\b(?:writes|operatorWrites|changesPerson)\(\s*'(\w+)'/g)].map(
    ([, name = '']) => name,
  );
  const { paths } = parse(readFileSync(join(root, 'openapi/business.yaml'), 'utf8')) as {
    paths: Record<string, Record<string, { operationId?: string; parameters?: { $ref?: string }[] }>>;
  };
  const commands = Object.values(paths)
    .flatMap((path) => Object.values(path))
    .filter(({ parameters }) => parameters?.some(({ $ref }) => $ref?.endsWith('/AuditReason')))
    .map(({ operationId = '' }) => operationId);
  const found = [...named, ...made];
  // Each command names its operation, or another of the same document does it for it.
  assert.deepEqual(
    commands.filter((name) => !found.includes(name)),
    ['registerSshKeyForOrganization'],
  );
  return found;
}
