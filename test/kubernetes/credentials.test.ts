/** How we are let in at an API server, and what is refused before anything is sent. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { stringify } from 'yaml';
import { checkLab } from '../../src/domain/clusters/lab.ts';
import type { KubernetesSettings } from '../../src/domain/kubernetes/settings.ts';
import { KubernetesClient } from '../../src/sync/kubernetes/client.ts';
import { CommandCredentials } from '../../src/sync/kubernetes/credentials.ts';
import { createAuthority } from '../support/certificate.ts';
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
  const client = new KubernetesClient(settings);
  try {
    // The first one loads the library.
    await client.open(AbortSignal.timeout(60_000));
    api.asked = [];
    await client.request({ path: '/api/v1/nodes' }, AbortSignal.timeout(10_000));
    return api.asked[0]?.user;
  } finally {
    await client.close();
  }
}

const ours = 'system:serviceaccount:andromeda-system:andromeda';

test('a token or a client certificate, of a kubeconfig with its authority in it or with files next to it, or of the settings', async () => {
  const { cert, key } = api.authority.issue({ name: 'andromeda', group: 'sync' });
  const certificateAuthority = file('ca.pem', api.authority.ca);
  const [clientCertificate, clientKey] = [file('c.pem', cert), file('k.pem', key)];
  const inside = kubeconfig(
    { 'certificate-authority-data': base64(api.authority.ca) },
    { token: 'andromeda' },
  );
  const nextTo = kubeconfig(
    { 'certificate-authority': 'ca.pem' },
    { 'client-certificate': 'c.pem', 'client-key': 'k.pem' },
    { 'current-context': 'one' },
  );
  for (const settings of [
    { kubeconfig: file('kc1', inside) },
    { kubeconfig: file('kc2', nextTo), context: 'two' },
    { server: `${api.url}/`, certificateAuthority, tokenFile: file('t', 'andromeda\n') },
    { server: api.url, certificateAuthority, clientCertificate, clientKey },
  ])
    assert.equal(await whoIsAsked(settings), ours, Object.keys(settings).join());
});

test("a server whose certificate is another authority's is sent nothing", async () => {
  const other = createAuthority();
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
      /bad(:\d+:\d+: not readable as YAML\.|: it cannot be read as a kubeconfig)/,
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
    await assert.rejects(new KubernetesClient(settings).open(AbortSignal.timeout(10_000)), (error: Error) => {
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

/** A kubeconfig whose command counts its runs in a file, and says what stands in another. */
function commanded(name: string, more = '') {
  const runs = file(`${name}.runs`, '');
  const said = file(`${name}.said`, '');
  const exec = {
    apiVersion: 'client.authentication.k8s.io/v1',
    command: './sh',
    args: ['-c', `echo "$KUBERNETES_EXEC_INFO $STAGE" >>${runs}; ${more} cat ${said}`],
    env: [{ name: 'STAGE', value: 'test' }],
    provideClusterInfo: true,
  };
  if (!existsSync(join(directory.path, 'sh'))) symlinkSync('/bin/sh', join(directory.path, 'sh'));
  const cluster = { 'certificate-authority-data': base64(api.authority.ca) };
  const kubeconfigFile = file(name, kubeconfig(cluster, { exec }));
  return {
    settings: { kubeconfig: kubeconfigFile },
    runs: () => readFileSync(runs, 'utf8').split('\n').slice(0, -1),
    say: (status: object) =>
      file(`${name}.said`, JSON.stringify({ apiVersion: exec.apiVersion, kind: 'ExecCredential', status })),
  };
}

const nodes = { path: '/api/v1/nodes' };
const soon = () => AbortSignal.timeout(20_000);

test("a kubeconfig's command runs once for many requests, is handed what kubectl hands it, and runs again when that expires", async () => {
  const command = commanded('exec1');
  command.say({ token: 'andromeda', expirationTimestamp: new Date(Date.now() + 3_600_000).toISOString() });
  const client = new KubernetesClient(command.settings);
  await Promise.all([client.open(soon()), client.open(soon())]);
  await Promise.all([client.request(nodes, soon()), client.request(nodes, soon())]);
  await client.open(soon());
  const [info, ...others] = command.runs();
  assert.deepEqual(others, []);
  const [, json = '', stage] = /^(.*) (\w+)$/.exec(info ?? '') ?? [];
  const { spec, kind } = JSON.parse(json);
  assert.deepEqual(
    [kind, spec.interactive, spec.cluster.server, stage],
    ['ExecCredential', false, api.url, 'test'],
  );
  await client.close();
  const past = new KubernetesClient(command.settings);
  command.say({ token: 'andromeda', expirationTimestamp: '2020-01-01T00:00:00Z' });
  await past.open(soon());
  await past.open(soon());
  assert.equal(command.runs().length, 3);
  await past.close();
});

test("a kubeconfig's command that hangs ends at a deadline, is named, and is tried again", async () => {
  const command = commanded('exec2', 'test -e go || sleep 600;'.replace('go', join(directory.path, 'go')));
  command.say({ token: 'andromeda' });
  const client = new KubernetesClient(command.settings, undefined, new CommandCredentials(300));
  await assert.rejects(client.open(soon()), {
    message: './sh, which the kubeconfig names, gave no credentials in 0.3 s',
  });
  file('go', '');
  await client.request(nodes, soon());
  await client.close();
});

test('credentials that the server does not accept any more are read and made again', async () => {
  const command = commanded('exec3');
  const byFile = {
    server: api.url,
    tokenFile: file('token3', ''),
    certificateAuthority: file('ca.pem', api.authority.ca),
  };
  for (const settings of [command.settings, byFile]) {
    command.say({ token: 'old' });
    file('token3', 'old');
    const client = new KubernetesClient(settings);
    await assert.rejects(client.request(nodes, soon()), /401/);
    command.say({ token: 'andromeda' });
    file('token3', 'andromeda');
    await Promise.all([client.request(nodes, soon()), client.request(nodes, soon())]);
    await client.close();
  }
});

test('what kubectl reads of a kubeconfig is read: tokenFile before token, and the server under its name in TLS', async () => {
  file('t', 'andromeda\n');
  const cluster = { 'certificate-authority-data': base64(api.authority.ca), 'tls-server-name': 'localhost' };
  const content = kubeconfig(cluster, { tokenFile: 't', token: 'other' });
  assert.equal(await whoIsAsked({ kubeconfig: file('kc8', content) }), ours);
  const misnamed = kubeconfig({ ...cluster, 'tls-server-name': 'elsewhere.example' }, { token: 'andromeda' });
  await assert.rejects(whoIsAsked({ kubeconfig: file('kc9', misnamed) }), /elsewhere\.example/);
  for (const user of [{ 'auth-provider': { name: 'oidc' } }, { 'as-groups': ['x'] }, { username: 'x' }]) {
    const [name] = Object.keys(user);
    const refused = file('kc10', kubeconfig({ ...cluster }, { token: 'andromeda', ...user }));
    await assert.rejects(whoIsAsked({ kubeconfig: refused }), {
      message: `${refused}: ${name} is not supported.`,
    });
  }
});

const sections: [KubernetesSettings, RegExp][] = [
  [{}, /needs a kubeconfig or a server/],
  [{ kubeconfig: 'k', server: 'https://x' }, /has a kubeconfig, which goes without server/],
  [{ kubeconfig: 'k', usernamePrefix: 'system:x:' }, /has a usernamePrefix under system:/],
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
