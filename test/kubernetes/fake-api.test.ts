/** The fake API server says what the real one said, and what its refusals mean. */
import assert from 'node:assert/strict';
import { request as httpsRequest } from 'node:https';
import { after, before, test } from 'node:test';
import {
  describeRight,
  KubernetesError,
  meaningOf,
  type StatusBody,
} from '../../src/domain/kubernetes/status.ts';
import { Faults } from '../../src/sync/kubernetes/faults.ts';
import { tokenOf } from './accounts.ts';
import { type FakeApi, startFakeApi } from './fake-api.ts';
import { type Exchange, recorded, recordings } from './recorded.ts';

/** Those whose answer the fake makes itself; the others it gives as they are. */
const made = recordings.filter(({ name }) =>
  /^(rolebindings|clusterrolebindings|clusterroles|selfsubjectaccessreviews)\/|(list-no-rights|-token)-\d+$/.test(
    name,
  ),
);

let api: FakeApi;
before(async () => {
  api = await startFakeApi();
  api.world.namespaces.set('leaving', false);
  const binding = (name: string, subject: string) => ({
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'edit' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: subject }],
  });
  for (const name of ['platform-admins', 'andromeda.7b6f1f0e.dev-eve']) {
    const ask = { verb: 'create', group: 'rbac.authorization.k8s.io', resource: 'rolebindings', name };
    const account = api.accounts['admin'];
    assert.ok(account);
    api.bindings.create({ ...ask, namespace: 'team-a' }, account, binding(name, 'root@physics.example'));
  }
});
after(() => api.stop());

for (const exchange of made) {
  test(`as recorded: ${exchange.name}`, async () => {
    const { status, text } = await replay(exchange);
    assert.equal(status, exchange.response.status, text);
    assert.deepEqual(plain(JSON.parse(text)), plain(exchange.response.body));
  });
}

function replay({ request }: Exchange): Promise<{ status: number; text: string }> {
  const token = tokenOf(request.as);
  const body = bodyOf(request);
  return new Promise((resolve, reject) => {
    const call = httpsRequest(
      api.url + request.path,
      {
        method: request.method,
        ca: api.authority.ca,
        headers: {
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
          ...(body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }),
        },
        timeout: 5000,
      },
      async (response) => {
        let text = '';
        for await (const chunk of response) text += chunk;
        resolve({ status: response.statusCode ?? 0, text });
      },
    );
    call.on('timeout', () => call.destroy(new Error('no answer')));
    call.on('error', reject);
    call.end(body);
  });
}

/** What was sent; a version that was the right one then is the right one now. */
function bodyOf({ body, path }: Exchange['request']): string | undefined {
  const preconditions = body?.['preconditions'] as { uid?: string; resourceVersion?: string } | undefined;
  if (preconditions?.uid && preconditions.resourceVersion) {
    const found = api.bindings.all.get(`team-a/${path.split('/').at(-1)}`);
    Object.assign(preconditions, {
      uid: found?.metadata.uid,
      resourceVersion: found?.metadata.resourceVersion,
    });
  }
  return body && JSON.stringify(body);
}

/** Without what is different each time, and what only says more. */
function plain(value: unknown, key = ''): unknown {
  if (['uid', 'resourceVersion', 'creationTimestamp', 'reason', 'rules'].includes(key)) {
    return key === 'reason' && typeof value === 'string' && !value.includes(' ') ? value : undefined;
  }
  if (typeof value === 'string') {
    return value
      .replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'UID')
      .replace(/record \(\d+\)/, 'record');
  }
  if (Array.isArray(value)) return value.map((one) => plain(one));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, inner]) => {
      const settled = plain(inner, name);
      return settled === undefined ? [] : [[name, settled]];
    }),
  );
}

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
