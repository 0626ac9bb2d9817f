/** The fake API server says what the real one said. */
import assert from 'node:assert/strict';
import { request as httpsRequest } from 'node:https';
import { after, before, test } from 'node:test';
import { tokenOf } from './accounts.ts';
import { type FakeApi, startFakeApi } from './fake-api.ts';
import { type Exchange, recordings } from './recorded.ts';

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
