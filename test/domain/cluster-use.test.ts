/** What a person can do on a cluster, and where not, what is missing and who has to act next: the table of it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  absenceOf,
  type KubernetesUseFacts,
  kubernetesUse,
  sshUse,
  type Use,
  type UseContext,
  usualMs,
} from '../../src/domain/access/cluster-use.ts';
import type { AccessFacts } from '../../src/domain/access/decision.ts';
import type { AccessRequest } from '../../src/domain/access/request.ts';
import { accessFacts } from '../support/access.ts';

const now = Date.parse('2030-01-02T03:04:05.000Z');
const at = (ms: number) => new Date(now + ms).toISOString();
const facts: AccessFacts = {
  ...{ ...accessFacts, permissions: ['clusters.ssh', 'clusters.kubernetes'] },
  policy: { maxHoursWithoutSignIn: 90 * 24, keyMaxDays: 365 },
};
const on: UseContext = {
  name: 'alpha',
  lifecycle: 'active',
  seesFaults: false,
  fault: undefined,
  changedAt: now - 1_000,
  now,
  absence: { reason: 'no_permission' },
};
const kubernetes: KubernetesUseFacts = {
  hasGrant: false,
  access: { state: 'applied' },
  isReady: true,
  observedMsAgo: 0,
  offersLogin: true,
};
const late = { changedAt: now - usualMs - 1 };
const fault = { fault: 'the disk of node-3 is full' };
const sees = { seesFaults: true };

interface Case extends Partial<UseContext> {
  facts?: Partial<AccessFacts>;
  kubernetes?: Partial<KubernetesUseFacts>;
  gatewayFault?: string;
  listChangedAt?: number;
}

const ssh = ({ facts: changes, gatewayFault, listChangedAt = 0, ...context }: Case): Use =>
  sshUse({ access: { ...facts, ...changes }, gatewayFault, listChangedAt }, { ...on, ...context });
const kubectl = ({ facts: changes, kubernetes: other, ...context }: Case): Use =>
  kubernetesUse({ ...facts, ...changes }, { ...kubernetes, ...other }, { ...on, ...context });

const unconfirmed: Case = { facts: { confirmed: undefined } };
const newKey: Case = { facts: { activeKeys: ['SHA256:a', 'SHA256:new'] } };
const refused: Case = { kubernetes: { access: { state: 'failed' } } };
const down: Case = { facts: { loginNodes: [] } };
const provisioning: Case = { facts: { clusterState: 'provisioning' }, lifecycle: 'provisioning' };

/** What is so; the state, who acts next, the reason, and a part of the sentence. */
type Row = [so: Case, outcome: string, sentence: RegExp];

const sshTable: Row[] = [
  [{}, 'ready - ready', /^You can log in over SSH\.$/],
  [{ facts: { takesAccessList: false } }, 'none - not_offered', /Kubernetes only/],
  [{ facts: { takesAccessList: false, activeKeys: [] } }, 'none - not_offered', /Kubernetes only/],
  [{ facts: { permissions: ['clusters.kubernetes'] } }, 'missing you no_permission', /clusters\.ssh/],
  [{ facts: { permissions: ['clusters.read'], activeKeys: [] } }, 'missing you no_permission', /SSH/],
  [{ facts: { isMember: false } }, 'missing you no_permission', /clusters\.ssh/],
  [{ facts: { role: 'admin', permissions: [] } }, 'ready - ready', /over SSH/],
  [{ facts: { activeKeys: [] } }, 'missing you no_keys', /no SSH key registered/],
  [{ facts: { activeKeys: [], lapsedKeys: ['x'] } }, 'missing you key_lapsed', /good for 365 days/],
  [{ facts: { activeKeys: [], unfitKeys: ['x'] } }, 'missing you no_keys', /Security keys are not acc/],
  [{ facts: { signIn: { ms: 90 * 86_400_000, leftMs: -1 } } }, 'missing you sign_in_lapsed', /for 90 days/],
  [{ facts: { username: undefined } }, 'missing manager named_user_required', /no user name/],
  [provisioning, 'missing operator cluster_inactive', /alpha is provisioning/],
  [{ facts: { isListed: false } }, 'pending service applying', /account and keys to alpha/],
  [unconfirmed, 'pending service applying', /to alpha, which takes some seconds/],
  [{ ...unconfirmed, ...late }, 'failed operator late', /since 2030-01-02 02:59 UTC/],
  [{ ...unconfirmed, ...fault }, 'failed operator fault', /applied\. Your administrator has been told\.$/],
  [{ ...unconfirmed, ...fault, ...sees }, 'failed operator fault', /applied: the disk of node-3 is full$/],
  // Of what works already, a fault about others says nothing.
  [fault, 'ready - ready', /over SSH/],
  [newKey, 'ready - ready', /Sending your newest key to alpha/],
  [{ ...newKey, ...late }, 'ready - ready', /Tell your administrator/],
  [{ facts: { observedMsAgo: 600_000 } }, 'failed operator not_reporting', /since 2030-01-02 02:54 UTC/],
  [{ facts: { observedMsAgo: undefined } }, 'pending service applying', /first report of alpha/],
  [{ facts: { observedMsAgo: undefined }, ...late }, 'failed operator not_reporting', /not reported yet/],
  [down, 'pending service restarting', /login nodes of alpha restart/],
  [{ ...down, ...late }, 'failed operator not_answering', /Tell your administrator/],
  [{ ...down, ...late, listChangedAt: now }, 'pending service restarting', /list of accounts/],
  [{ ...down, ...fault }, 'failed operator fault', /has been told/],
  [{ gatewayFault: 'x', ...sees }, 'failed operator fault', /^The SSH gateway does not serve\. Your adm/],
];

const kubectlTable: Row[] = [
  [{}, 'ready - ready', /^You can use kubectl\.$/],
  // A key, and what SSH lacks, is no concern of kubectl.
  [{ facts: { activeKeys: [], permissions: ['clusters.kubernetes'] } }, 'ready - ready', /kubectl/],
  [{ facts: { permissions: ['clusters.kubernetes.admin'] } }, 'ready - ready', /kubectl/],
  [{ facts: { permissions: ['clusters.ssh'] } }, 'missing you no_permission', /clusters\.kubernetes\.$/],
  [{ facts: { isMember: false }, kubernetes: { hasGrant: true } }, 'ready - ready', /kubectl/],
  [{ facts: { signIn: { ms: 90 * 86_400_000, leftMs: -1 } } }, 'missing you sign_in_lapsed', /for 90 days/],
  [{ lifecycle: 'provisioning' }, 'missing operator cluster_inactive', /is provisioning/],
  [{ kubernetes: { offersLogin: false } }, 'missing operator no_kubernetes_login', /no sign-in for kubectl/],
  [{ kubernetes: { isReady: false } }, 'failed operator not_answering', /does not answer\. Your adm/],
  [{ kubernetes: { isReady: undefined, observedMsAgo: 600_000 } }, 'failed operator not_reporting', /02:54/],
  [{ kubernetes: { access: { state: 'pending' } } }, 'pending service applying', /permissions to alpha/],
  [{ kubernetes: { access: { state: 'pending' } }, ...late }, 'failed operator late', /Tell your adm/],
  [{ ...refused, ...fault, ...sees }, 'failed operator fault', /: the disk of node-3 is full$/],
];

for (const [side, useOf, table] of [
  ['SSH', ssh, sshTable],
  ['kubectl', kubectl, kubectlTable],
] as const) {
  test(`${side}: what is so decides what can be done, who acts next and the sentence`, () => {
    for (const [so, outcome, sentence] of table) {
      const { state, next = '-', reason, granted, message } = useOf(so);
      assert.equal(`${state} ${next} ${reason}`, outcome, JSON.stringify(so));
      assert.match(message, sentence, JSON.stringify(so));
      assert.equal(granted, !/not_offered|permission/.test(reason), reason);
      // What is sent names where to, and what lasts is never to be waited for.
      if (reason === 'applying') assert.match(message, /alpha/);
      if (state === 'failed') assert.match(message, /administrator|: the disk/);
    }
  });
}

test('a cluster without Kubernetes of its own offers no kubectl', () => {
  const use = kubernetesUse(facts, undefined, on);
  assert.deepEqual([use.state, use.reason, use.granted], ['none', 'not_offered', false]);
});

test('what became of a permission that is not held: asked for, taken away again, ended, never given', () => {
  const request = (changes: Partial<AccessRequest>): AccessRequest => ({
    id: 'access_request_1',
    organizationId: 'org_1',
    userId: 'user_1',
    email: 'ada@physics.example',
    clusterId: null,
    permissions: ['clusters.ssh.admin'],
    hours: null,
    reason: 'runs',
    state: 'approved',
    createdAt: at(-9_000),
    decidedAt: at(-8_000),
    decidedBy: 'own@physics.example',
    decisionReason: 'yes',
    expiresAt: null,
    ...changes,
  });
  const of = (requests: AccessRequest[], ended: AccessFacts['ended'] = []) =>
    absenceOf('clusters.ssh', { ended }, requests, now);
  const open = request({ state: 'open', decidedAt: null, createdAt: at(-1_000) });
  const over = request({ expiresAt: at(-1) });
  assert.deepEqual(of([]), { reason: 'no_permission' });
  assert.deepEqual(of([request({})]), { reason: 'permission_removed', at: at(-8_000) });
  assert.deepEqual(of([request({ expiresAt: at(1) })]), { reason: 'permission_removed', at: at(-8_000) });
  assert.deepEqual(of([over]), { reason: 'permission_ended', at: at(-1) });
  assert.deepEqual(of([], [{ key: 'clusters.configure', expiresAt: at(-5) }]), {
    reason: 'permission_ended',
    at: at(-5),
  });
  assert.deepEqual(of([open, request({})]), { reason: 'permission_requested', at: at(-1_000) });
  // Of something else, of another kind, too old to be decided.
  assert.deepEqual(of([request({ permissions: ['clusters.read'] })]), { reason: 'no_permission' });
  assert.deepEqual(of([request({ state: 'declined' })]), { reason: 'no_permission' });
  assert.deepEqual(of([request({ state: 'open', createdAt: at(-15 * 86_400_000) })]), {
    reason: 'no_permission',
  });
  const absence = of([request({})]);
  const use = ssh({ facts: { permissions: [] }, absence });
  assert.equal(
    use.message,
    'Your SSH access was approved on 2030-01-02 03:03 UTC and has been taken away again.',
  );
  assert.deepEqual([use.next, use.granted], ['you', false]);
});
