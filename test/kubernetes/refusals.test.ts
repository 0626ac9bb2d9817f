/** What a refusal means, of refusals that were recorded: the same status stands for several things. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  describeRight,
  KubernetesError,
  meaningOf,
  type StatusBody,
} from '../../src/domain/kubernetes/status.ts';
import { Faults } from '../../src/sync/kubernetes/faults.ts';
import { recorded } from './recorded.ts';

const table: [string, string, string?][] = [
  ['errors/wrong-token-401', 'credentials'],
  ['errors/no-token-403', 'credentials'],
  ['version-and-health/readyz-starting-403', 'credentials'],
  ['nodes/list-no-rights-403', 'list nodes'],
  ['rolebindings/apply-without-create-403', 'create rolebindings (rbac.authorization.k8s.io)'],
  ['rolebindings/delete-no-rights-403', 'delete rolebindings (rbac.authorization.k8s.io)'],
  ['rook/list-no-rights-403', 'list cephfilesystemsubvolumegroups (ceph.rook.io)'],
  ['rolebindings/apply-custom-role-not-bindable-403', 'bind', 'gpu-quota-reader'],
  ['rolebindings/apply-terminating-namespace-403', 'namespace terminating'],
  ['errors/webhook-denies-403', 'policy'],
  ['rolebindings/post-missing-namespace-404', 'namespace missing'],
  ['rolebindings/apply-missing-clusterrole-as-andromeda-404', 'role', 'no-such-role'],
  ['rolebindings/delete-404', 'missing', 'edit'],
  ['clusterroles/get-404', 'missing'],
  ['rook/list-without-rook-404', 'missing'],
  ['rolebindings/name-collision-post-409', 'exists'],
  ['rolebindings/apply-guarded-by-uid-missing-409', 'conflict'],
  ['rolebindings/apply-guarded-by-resource-version-409', 'conflict'],
  ['rolebindings/delete-uid-mismatch-409', 'conflict'],
  ['rolebindings/apply-guarded-by-uid-422', 'conflict'],
  ['rolebindings/apply-other-roleref-422', 'conflict'],
  ['errors/too-many-requests-429', 'trouble'],
  ['errors/webhook-down-500', 'trouble'],
  ['errors/request-timeout-504', 'trouble'],
];
for (const [name, expected, role] of table) {
  test(`${name} means ${expected}`, () => {
    const { status, body } = recorded(name);
    const refusal = { status, method: 'GET', path: '/x', body: body as StatusBody | string };
    const meaning = meaningOf(new KubernetesError(refusal), role);
    const words =
      meaning.kind === 'right'
        ? describeRight(meaning.right)
        : meaning.kind === 'namespace'
          ? `${meaning.kind} ${meaning.state}`
          : meaning.kind;
    assert.equal(words, expected);
  });
}

test("other people's words are one line, and not longer than fits", () => {
  const body = { message: `first\nsecond\u001b[31m ${'x'.repeat(5000)}` };
  const { message } = new KubernetesError({ status: 422, method: 'PATCH', path: '/x', body });
  assert.ok(message.length < 350);
  assert.match(message, /^PATCH \/x: 422 first second \[31m x+…$/);
});

test('what is said is the same in whichever order it came up, and what is one cause is said once', () => {
  const trouble = new KubernetesError({ status: 503, method: 'GET', path: '/x', body: 'away' });
  const sentences = ['The namespace b is away', 'The namespace a is away'];
  const [one, other] = [sentences, sentences.toReversed()].map((order) => {
    const faults = new Faults();
    for (const sentence of order) faults.add(sentence);
    for (const what of order) faults.refused(trouble, { what });
    return faults.text();
  });
  assert.equal(one, other);
  assert.equal(
    one,
    'The API server is in trouble (503): away. The namespace a is away. The namespace b is away.',
  );
});
