/** How we are let in at an API server, and what is refused before anything is sent. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { stringify } from 'yaml';
import { checkLab } from '../../src/domain/clusters/lab.ts';
import type { KubernetesSettings } from '../../src/domain/kubernetes/settings.ts';
import { openClient } from '../../src/sync/kubernetes/client.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { type FakeApi, startFakeApi } from './fake-api.ts';

const directory = temporaryDirectory();
let api: FakeApi;
before(async () => {
  api = await startFakeApi();
});
after(async () => {
  await api.stop();
  directory[Symbol.dispose]();
});

function file(name: string, content: string | object): string {
  const path = join(directory.path, name);
  writeFileSync(path, typeof content === 'string' ? content : stringify(content), { mode: 0o600 });
  return path;
}

const base64 = (text: string) => Buffer.from(text).toString('base64');

function kubeconfig(cluster: object, user: object, rest: object = {}): object {
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server: api.url, ...cluster } }],
    users: [{ name: 'u', user }],
    contexts: [
      { name: 'one', context: { cluster: 'c', user: 'nobody' } },
      { name: 'two', context: { cluster: 'c', user: 'u' } },
    ],
    'current-context': 'two',
    ...rest,
  };
}

async function whoIsAsked(settings: KubernetesSettings): Promise<string | undefined> {
  const client = await openClient(settings);
  try {
    api.asked = [];
    await client.request({ path: '/api/v1/nodes' }, AbortSignal.timeout(10_000));
    return api.asked[0]?.user;
  } finally {
    await client.close();
  }
}

const ours = 'system:serviceaccount:andromeda-system:andromeda';

test('a kubeconfig with a token, its certificate authority in it', async () => {
  const content = kubeconfig(
    { 'certificate-authority-data': base64(api.authority.ca) },
    { token: 'andromeda' },
  );
  assert.equal(await whoIsAsked({ kubeconfig: file('kc1', content) }), ours);
});

test('a kubeconfig with files next to it, and a context that is named', async () => {
  const { cert, key } = api.authority.issue({ name: 'andromeda', group: 'sync' });
  file('ca.pem', api.authority.ca);
  file('c.pem', cert);
  file('k.pem', key);
  const user = { 'client-certificate': 'c.pem', 'client-key': 'k.pem' };
  const content = kubeconfig({ 'certificate-authority': 'ca.pem' }, user, { 'current-context': 'one' });
  assert.equal(await whoIsAsked({ kubeconfig: file('kc2', content), context: 'two' }), ours);
});

test('a server with a token', async () => {
  const settings = {
    certificateAuthority: file('ca.pem', api.authority.ca),
    tokenFile: file('t', 'andromeda\n'),
  };
  assert.equal(await whoIsAsked({ server: `${api.url}/`, ...settings }), ours);
});

test('a server with a client certificate', async () => {
  const { cert, key } = api.authority.issue({ name: 'andromeda', group: 'sync' });
  const settings = {
    certificateAuthority: file('ca.pem', api.authority.ca),
    clientCertificate: file('c.pem', cert),
    clientKey: file('k.pem', key),
  };
  assert.equal(await whoIsAsked({ server: api.url, ...settings }), ours);
});

test("a server whose certificate is another authority's is sent nothing", async () => {
  const other = (await import('../support/certificate.ts')).createAuthority();
  const settings = { certificateAuthority: file('other.pem', other.ca), tokenFile: file('t', 'andromeda') };
  api.asked = [];
  await assert.rejects(whoIsAsked({ server: api.url, ...settings }));
  assert.deepEqual(api.asked, []);
});

test('what cannot be used is refused in words that hold no secret', async () => {
  const secret = 'TOPSECRETTOKEN';
  const refused: [KubernetesSettings, RegExp][] = [
    [{ kubeconfig: join(directory.path, 'none') }, /Cannot read .*none: there is no such file/],
    [
      { kubeconfig: file('bad', `users: [{ token: ${secret}`) },
      /bad(:\d+)?: it cannot be read as a kubeconfig/,
    ],
    [{ kubeconfig: file('kc6', kubeconfig({}, { token: secret })), context: 'x' }, /it has no context x/],
    [{ kubeconfig: file('kc', kubeconfig({}, { token: secret })), context: 'one' }, /names no user/],
    [
      { kubeconfig: file('kc4', kubeconfig({ 'insecure-skip-tls-verify': true }, { token: secret })) },
      /insecure-skip-tls-verify is not supported/,
    ],
    [
      { kubeconfig: file('kc5', kubeconfig({ server: 'http://10.0.0.1' }, { token: secret })) },
      /must be an https:\/\/ address/,
    ],
    [{ server: api.url, tokenFile: join(directory.path, 'none') }, /Cannot read .*none/],
  ];
  for (const [settings, words] of refused) {
    await assert.rejects(openClient(settings), (error: Error) => {
      assert.match(error.message, words);
      assert.doesNotMatch(error.message, new RegExp(secret));
      return true;
    });
  }
});

test('a token that cannot be a header is not sent, and not shown', async () => {
  const settings = {
    certificateAuthority: file('ca.pem', api.authority.ca),
    tokenFile: file('t', 'TOP\nSECRET'),
  };
  await assert.rejects(whoIsAsked({ server: api.url, ...settings }), (error: Error) => {
    assert.match(error.message, /characters that cannot be sent/);
    assert.doesNotMatch(error.message, /SECRET/);
    return true;
  });
});

test("a kubeconfig's command that fails is named, and what it says is not", async () => {
  const exec = {
    apiVersion: 'client.authentication.k8s.io/v1',
    command: '/bin/sh',
    args: ['-c', 'echo TOPSECRET >&2; exit 3'],
  };
  const content = kubeconfig({ 'certificate-authority-data': base64(api.authority.ca) }, { exec });
  await assert.rejects(whoIsAsked({ kubeconfig: file('kc3', content) }), (error: Error) => {
    assert.match(error.message, /\/bin\/sh/);
    assert.doesNotMatch(error.message, /TOPSECRET/);
    return true;
  });
});

const sections: [KubernetesSettings, RegExp][] = [
  [{}, /needs a kubeconfig or a server/],
  [{ kubeconfig: 'k', server: 'https://x' }, /has a kubeconfig, which goes without server/],
  [{ server: 'https://x' }, /needs either a tokenFile or a clientCertificate/],
  [{ server: 'https://x', tokenFile: 't', clientKey: 'k' }, /needs both a clientCertificate and a clientKey/],
  [{ server: 'https://x', tokenFile: 't', context: 'c' }, /has a context, which goes with a kubeconfig only/],
];
for (const [kubernetes, words] of sections) {
  test(`a lab with the section ${JSON.stringify(kubernetes)} is refused`, () => {
    const lab = { clusters: [{ name: 'gamma', organization: 'physics', kubernetes }] };
    assert.throws(() => checkLab(lab), words);
  });
}
