/** What a lab that comes over the API may ask of the service's own host. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { LabCluster } from '../../../src/domain/clusters/lab.ts';
import { readConfig } from '../../../src/service/config/index.ts';
import { physics, startTestApp } from '../../support/app.ts';
import { fieldsOf } from '../../support/fields.ts';

const hostKey = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGZha2U';
const server = 'https://127.0.0.1:1';
const kubernetes = (name: string, section: object): LabCluster =>
  ({ name, organization: 'physics', scheduler: 'kubernetes', kubernetes: section }) as LabCluster;
const slurm = (name: string, section: object): LabCluster =>
  ({ name, organization: 'physics', scheduler: 'sunk', slurm: section }) as LabCluster;

async function start(t: TestContext, options: { config?: object; clusters?: LabCluster[] } = {}) {
  const lab = { ...physics, clusters: options.clusters ?? [] };
  const service = await startTestApp({ lab, config: options.config ?? {} });
  t.after(() => service[Symbol.asyncDispose]());
  /** Asked for in every way that there is: all of them must give the same answer. */
  const ask = async (cluster: LabCluster) => {
    const body = { lab: { clusters: [cluster] }, prune: false };
    const planned = await service.business('/operator/lab/plan', { as: 'root', method: 'POST', body });
    const added = await service.write('/operator/clusters', { as: 'root', body: cluster });
    const applied = await service.write('/operator/lab', { as: 'root', body });
    return [planned, added, applied];
  };
  const apply = (cluster: LabCluster) =>
    service.write('/operator/lab', { as: 'root', body: { lab: { clusters: [cluster] } } });
  return { ...service, ask, apply };
}

test('a lab over the API names files below the directory of the configuration, and no others', async (t) => {
  const service = await start(t);
  // `dataDir` is the directory of the test's configuration.
  const here = service.dataDir;
  const elsewhere = mkdtempSync(join(tmpdir(), 'andromeda-elsewhere-'));
  t.after(() => rmSync(elsewhere, { recursive: true }));
  writeFileSync(join(elsewhere, 'token'), 'secret');
  mkdirSync(join(here, 'keys'));
  writeFileSync(join(here, 'keys/token'), 'fine');
  symlinkSync(join(elsewhere, 'token'), join(here, 'out'));
  symlinkSync(elsewhere, join(here, 'away'));
  symlinkSync(join(here, 'data'), join(here, 'inside'));
  symlinkSync(join(here, 'data/none-yet'), join(here, 'dangling'));
  symlinkSync(join(here, 'keys'), join(elsewhere, 'way-in'));
  const hostile = [
    '/etc/passwd',
    '/proc/self/environ',
    join(elsewhere, 'token'),
    join(elsewhere, 'none'),
    join(elsewhere, 'way-in/token'),
    `${here}/../${here.split('/').at(-1)}/keys/token`,
    `${here}/keys/../data/andromeda.db`,
    'keys/token',
    '../keys/token',
    here,
    `${here}-beside/token`,
    ...[
      ...['out', 'away/token', 'away/none', 'dangling'],
      // What is the service's own.
      ...['data/keys/gateway_client_ed25519', 'data/andromeda.db', 'inside/keys/gateway_host_ed25519'],
      ...['data', 'data/none', 'andromeda.yaml'],
    ].map((name) => join(here, name)),
  ];
  const certificates = ['certificateAuthority', 'clientCertificate', 'clientKey'] as const;
  const files = [...certificates, 'tokenFile', 'kubeconfig'] as const;
  const settings = (setting: (typeof files)[number], path: string) => {
    const fine = join(here, 'keys/token');
    if (setting === 'kubeconfig') return { kubeconfig: path };
    if (setting === 'tokenFile') return { server, tokenFile: path };
    return { server, clientCertificate: fine, clientKey: fine, [setting]: path };
  };
  for (const [index, path] of hostile.entries()) {
    const setting = files[index % files.length] ?? 'kubeconfig';
    for (const { status, body } of await service.ask(kubernetes('gamma', settings(setting, path)))) {
      assert.equal(status, 400, `${setting}: ${path}`);
      assert.match(body.message, new RegExp(`^Cluster gamma: kubernetes\\.${setting} `));
      assert.match(body.message, /clusters\.secretsDir|is the service's own/);
      assert.equal(/relative path; give an absolute/.test(body.message), !path.startsWith('/'), body.message);
    }
  }
  const reached = { login: [{ name: 'a', host: 'h', hostKey }], controller: { host: 'h', hostKey } };
  for (const { status, body } of await service.ask(
    slurm('beta', { ...reached, manage: { identityFile: join(here, 'data/keys/gateway_client_ed25519') } }),
  )) {
    assert.equal(status, 400);
    assert.match(body.message, /Cluster beta: slurm\.manage\.identityFile .* is the service's own/);
  }
  // A file may come later.
  for (const [name, path] of [
    ['one', 'keys/token'],
    ['two', 'not-yet/token'],
  ] as const) {
    const replies = await service.ask(kubernetes(name, { server, tokenFile: join(here, path) }));
    assert.deepEqual(fieldsOf(replies, 'status'), [200, 201, 200], path);
  }
});

test('clusters.secretsDir is the directory in its place, and is never in the data directory', async (t) => {
  const elsewhere = mkdtempSync(join(tmpdir(), 'andromeda-secrets-'));
  t.after(() => rmSync(elsewhere, { recursive: true }));
  const service = await start(t, { config: { clusters: { secretsDir: elsewhere } } });
  const [, fine] = await service.ask(kubernetes('gamma', { kubeconfig: join(elsewhere, 'k') }));
  assert.equal(fine?.status, 201);
  const [, wrong] = await service.ask(kubernetes('delta', { kubeconfig: join(service.dataDir, 'k') }));
  assert.equal(wrong?.status, 400);
  const file = join(elsewhere, 'andromeda.yaml');
  for (const secretsDir of ['data', './data/keys', join(elsewhere, 'data')]) {
    writeFileSync(file, `clusters: { secretsDir: "${secretsDir}" }`);
    assert.throws(() => readConfig(file), /clusters\.secretsDir is in the data directory/);
  }
});

test('what the seed named stays, also when the lab is applied again; other uses of it are refused', async (t) => {
  const seeded = kubernetes('gamma', { server, tokenFile: '/run/lab/token' });
  const service = await start(t, { clusters: [seeded] });
  const again = await service.apply(seeded);
  assert.deepEqual([again.status, again.body.changes], [200, []]);
  const prefixed = { ...seeded, kubernetes: { ...seeded.kubernetes, usernamePrefix: 'lab:' } };
  assert.equal((await service.apply(prefixed)).status, 200);
  for (const section of [
    { server: 'https://127.0.0.1:2', tokenFile: '/run/lab/token' },
    { server, tokenFile: '/run/lab/other' },
    { kubeconfig: '/run/lab/token' },
  ]) {
    assert.equal((await service.apply(kubernetes('gamma', section))).status, 400, JSON.stringify(section));
  }
});

test('local: true comes from the host only: the seed, or a cluster that clusters.allowLocal names', async (t) => {
  const local = {
    login: [{ name: 'head', host: '127.0.0.1', hostKey, local: true }],
    controller: { local: true },
    configFile: '/nonexistent/slurm.conf',
  };
  const commands = { restartController: 'touch /tmp/never' };
  const service = await start(t, {
    config: { clusters: { allowLocal: ['allowed'] } },
    clusters: [slurm('seeded', local)],
  });
  const parts = [
    { controller: { local: true } },
    { login: local.login },
    { accounting: { local: true } },
    { compute: { local: true } },
  ];
  const away = {
    login: [{ name: 'a', host: 'h', hostKey }],
    controller: { host: 'h', hostKey },
    manage: { identityFile: join(service.dataDir, 'k') },
  };
  for (const part of parts) {
    for (const { status, body } of await service.ask(slurm('beta', { ...away, ...part, commands }))) {
      assert.equal(status, 400, JSON.stringify(part));
      assert.match(body.message, /local: true runs commands on the service's own host.*clusters\.allowLocal/);
    }
  }
  // Commands on the cluster's own hosts are its operator's.
  const [, added] = await service.ask(slurm('away', { ...away, commands }));
  assert.equal(added?.status, 201);
  const [, allowed] = await service.ask(slurm('allowed', { ...local, commands }));
  assert.equal(allowed?.status, 201);
  assert.deepEqual((await service.apply(slurm('seeded', local))).body.changes, []);
  assert.equal((await service.apply(slurm('seeded', { ...local, commands }))).status, 400);
  assert.equal((await service.apply(slurm('away', { ...local, commands }))).status, 400);
});

test('a simulated login node on a service that is root comes from the host only: the seed, or clusters.allowSimulated', {
  skip: process.getuid?.() === 0 ? false : 'only where the service is root',
}, async (t) => {
  const simulated = { computeNodes: 1, gpusPerNode: 1 };
  const described = (name: string, more: object): LabCluster =>
    ({ name, organization: 'physics', ...more }) as LabCluster;
  const seeded = described('seeded', { scheduler: 'sunk', simulated });
  const clusters = [seeded];
  const service = await start(t, { config: { clusters: { allowSimulated: false } }, clusters });
  for (const { status, body } of await service.ask(described('beta', { scheduler: 'sunk', simulated }))) {
    assert.equal(status, 400);
    assert.match(
      body.message,
      /Cluster beta: .*the service is root there.*Set clusters\.allowSimulated: true/,
    );
  }
  // Kubernetes has no login node.
  const [, kubernetesOnly] = await service.ask(described('gamma', { scheduler: 'kubernetes', simulated }));
  assert.equal(kubernetesOnly?.status, 201);
  const larger = { ...seeded, simulated: { ...simulated, computeNodes: 2 } } as LabCluster;
  assert.equal((await service.apply(larger)).status, 200);
  const allowed = await start(t, { config: { clusters: { allowSimulated: true } } });
  const [, added] = await allowed.ask(described('beta', { scheduler: 'sunk', simulated }));
  assert.equal(added?.status, 201);
});
