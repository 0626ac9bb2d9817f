/** `andromeda check`: what would keep a service from starting or serving, in words and by its exit status. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import Database from 'better-sqlite3';
import { stringify } from 'yaml';
import type { Lab } from '../../src/domain/clusters/lab.ts';
import { wrong } from '../../src/service/host/checks/findings.ts';
import { checkAuditFile } from '../../src/service/host/files.ts';
import { createInstallation } from '../../src/store/data-dir/lab.ts';
import { openStore } from '../../src/store/data-dir/open-store.ts';
import { createPerson } from '../../src/store/people/people.ts';
import { createAuthority } from '../support/certificate.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { limit } from '../support/limit.ts';
import { freePorts, listening } from '../support/ports.ts';
import { program, runProgram } from '../support/program.ts';
import { ancient, newest } from '../support/schemas.ts';
import { serve, writeSettings } from '../support/service-process.ts';
import { openTestStore } from '../support/store.ts';
import { testAsRoot } from '../support/unless.ts';

const dayMs = 86_400_000;
const small: Lab = {
  organizations: [{ slug: 'physics', name: 'P', members: [{ email: 'a@p.example', role: 'owner' }] }],
};

/** A directory with a configuration in which nothing is wrong. */
async function installation(t: TestContext, extra: object = {}) {
  const directory = temporaryDirectory();
  t.after(() => directory[Symbol.dispose]());
  return { path: directory.path, ...(await writeSettings(directory.path, extra)) };
}

/** Its exit status and the lines that it prints. */
async function check(file: string, ...args: string[]) {
  const { status, out, err } = await runProgram('check', '--config', file, ...args);
  assert.equal(err, '');
  return { status, lines: out.split('\n').filter((line) => line !== '') };
}

/** Every name below a directory, with its size and when it was changed. */
function contents(path: string) {
  return readdirSync(path, { recursive: true, encoding: 'utf8' })
    .sort()
    .map((name) => {
      const { size, mtimeMs, ino } = statSync(join(path, name));
      return [name, size, mtimeMs, ino];
    });
}

test('before the first start all is well, and nothing is made', async (t) => {
  const { path, file } = await installation(t);
  const { status, lines } = await check(file);
  assert.equal(status, 0, lines.join('\n'));
  for (const line of lines) assert.match(line, /^ok {5}(settings|file|data|database|issuer|port) +\S/);
  assert.equal(lines.filter((line) => /port .* free\.$/.test(line)).length, 4);
  assert.deepEqual(readdirSync(path), ['andromeda.yaml']);
  assert.deepEqual(await check(file, '--quiet'), { status: 0, lines: [] });
});

test('a setting that is none, and a file that is not there, are one line', async (t) => {
  const { file, write, settings } = await installation(t, { sink: {}, log: { level: 'loud' } });
  const [unknown = '', level = ''] = (await check(file)).lines;
  assert.match(level, /^wrong {2}settings +\S+:\d+: log\.level must be one of debug, /);
  assert.match(unknown, /^wrong {2}settings +\S+:\d+: sink is not a setting; known here: /);
  const tls = { cert: 'chain.pem', key: 'key.pem' };
  write({ platform: { ...settings.platform, tls } });
  const { status, lines } = await check(file);
  assert.equal(status, 1);
  assert.match(
    lines.join(),
    /^wrong {2}settings +\S+\/andromeda\.yaml:\d+: platform\.tls\.cert: cannot read .*chain\.pem: there is no such file/,
  );
  assert.match((await check(`${file}.no`)).lines.join(), /^wrong {2}settings .* there is no such file\.$/);
});

test('a file for the audit trail that cannot be made is a warning, as the service starts without it', async (t) => {
  const { path, file, write } = await installation(t);
  const about = async (place: string) => {
    write({ audit: { file: place } });
    return (await check(file, '--quiet')).lines.join('\n').replaceAll(path, '');
  };
  mkdirSync(join(path, 'logs'));
  assert.match(
    await about('./none/audit.jsonl'),
    /^warn +audit +\/andromeda.yaml:12: audit\.file: .* \/none is missing, or not this/,
  );
  assert.match(
    await about('./logs'),
    /^wrong +settings +\/andromeda.yaml:12: audit\.file: \/logs is no regular file\.$/,
  );
  assert.match(
    await about('./data/andromeda.db'),
    /^wrong +settings +\/andromeda.yaml:12: audit\.file .*within the data directory/,
  );
  assert.equal(await about('./logs/audit.jsonl'), '');
  assert.match(
    await about('./andromeda.yaml'),
    /^wrong +settings .*: audit\.file is .*, a file of the configur/,
  );
  writeFileSync(join(path, 'logs/other'), 'a line\n');
  assert.match(await about('./logs/other'), /^wrong +settings .* does not begin as an audit trail does/);
  for (const begun of ['', '{"kind":"en', '{"kind":"head","seq":1}\n']) {
    writeFileSync(join(path, 'logs/other'), begun);
    assert.equal(await about('./logs/other'), '');
  }
});

testAsRoot('a copy of the audit trail is of the account, and that in the group that may read it', () => {
  using directory = temporaryDirectory();
  chmodSync(directory.path, 0o755);
  const file = join(directory.path, 'audit.jsonl');
  writeFileSync(file, '');
  const said = (uid: number, group?: number) => {
    process.seteuid?.(uid);
    try {
      const audit = { signMs: 60_000, file, group };
      return [...checkAuditFile(audit, wrong)].map(({ verdict, text }) => `${verdict}: ${text}`).join();
    } finally {
      process.seteuid?.(0);
    }
  };
  assert.match(said(0, 4711), /^ok: /);
  assert.match(said(65_534), /^wrong: audit\.file: .* belongs to root, and must be this account's/);
  chownSync(file, 65_534, 65_534);
  assert.match(said(65_534, 4711), /^wrong: audit\.group: this account is not in that group/);
  assert.match(said(65_534), /^ok: /);
});

test('certificates: which file, when it ends, whether the key fits, and whether it is for the url', async (t) => {
  const { path, file, write, settings, platform } = await installation(t);
  const authority = createAuthority();
  const put = (one: { cert: string; key: string }) => {
    writeFileSync(join(path, 'chain.pem'), one.cert);
    writeFileSync(join(path, 'key.pem'), one.key, { mode: 0o600 });
  };
  const tls = { cert: 'chain.pem', key: 'key.pem' };
  const secure = { ...settings, platform: { ...settings.platform, tls } };
  const line = async () => {
    const { status, lines } = await check(file);
    return `${status} ${lines.find((one) => /^\w+ +certificate/.test(one))}`.replaceAll(path, '');
  };
  const names = '127\\.0\\.0\\.1, localhost';
  write(secure);
  const good = authority.issue('server');
  const at = '\\S+:\\d+: platform\\.tls: ';
  for (const [files, found] of [
    [
      authority.issue('server', 90 * dayMs + 60_000),
      `^0 ok +certificate +platform\\.tls: /chain\\.pem ends on \\S+, in 90 days\\. It is for ${names}\\.$`,
    ],
    [
      authority.issue('server', 7 * dayMs + 60_000),
      `^0 warn +certificate +${at}/chain\\.pem ends on \\S+, in 7 days\\. Renew it`,
    ],
    [
      authority.issue('server', -60_000),
      `^1 wrong +certificate +${at}/chain\\.pem ended on \\S+\\. Renew it`,
    ],
    [
      { ...good, key: authority.issue('server').key },
      `^1 wrong +certificate +${at}The key in /key\\.pem is not that of the first certificate in /chain\\.pem`,
    ],
    [{ ...good, key: 'no key' }, `^1 wrong +certificate +${at}/key\\.pem holds no private key in PEM`],
    [
      { ...good, cert: 'no certificate' },
      `^1 wrong +certificate +${at}/chain\\.pem holds no certificate in PEM\\.`,
    ],
  ] as const) {
    put(files);
    assert.match(await line(), RegExp(found));
  }
  put(authority.issue('server', 90 * dayMs));
  const elsewhere = { ...secure.platform, url: `https://gpu.physics.example:${platform}` };
  write({ ...secure, platform: elsewhere });
  const other = RegExp(
    `^1 wrong +certificate +/andromeda.yaml:3: platform\\.tls: /chain\\.pem is for ${names}, and not for gpu\\.physics\\.example, which the url names\\.$`,
  );
  assert.match(await line(), other);
  write({ ...secure, platform: elsewhere, trustedProxies: ['127.0.0.1'] });
  assert.match(await line(), /^0 warn /);
  chmodSync(join(path, 'key.pem'), 0o644);
  const { lines } = await check(file, '--quiet');
  assert.match(
    lines.join('\n'),
    /^wrong +file +\S+\/key\.pem is a key that everybody can read\. chmod o-r /m,
  );
});

test('a port that another program has is wrong, and says which setting it is', async (t) => {
  const { file, gateway, write } = await installation(t);
  const other = createServer((socket) => socket.end('SSH-2.0-OpenSSH_9.2p1\r\n'));
  await listening(other, gateway);
  t.after(() => other.close());
  write({ gateway: { listen: `127.0.0.1:${gateway}` } });
  const { status, lines } = await check(file, '--quiet');
  assert.match(
    lines.pop() ?? '',
    RegExp(
      `^warn +gateway +\\S+/andromeda.yaml:5: gateway\\.port: people log in to port 22, and .* on ${gateway}\\. Give `,
    ),
  );
  const line = RegExp(
    `^wrong  port +\\S+/andromeda.yaml:6: gateway\\.listen, 127\\.0\\.0\\.1 port ${gateway}: in use by another program\\. .*\\n$`,
  );
  assert.match(`${lines.join('\n')}\n`, line);
  assert.equal(status, 1);
});

test('while the service runs, its own ports are its own, and nothing of its data is touched', async (t) => {
  const { path, file, write, settings } = await installation(t);
  const [metrics] = await freePorts(1);
  writeFileSync(join(path, 'kubeconfig'), 'nothing', { mode: 0o600 });
  const authority = createAuthority().issue('server', 90 * dayMs);
  writeFileSync(join(path, 'chain.pem'), authority.cert);
  writeFileSync(join(path, 'key.pem'), authority.key, { mode: 0o600 });
  const cluster = {
    name: 'gamma',
    organization: 'physics',
    scheduler: 'kubernetes',
    kubernetes: { kubeconfig: 'kubeconfig' },
  };
  writeFileSync(join(path, 'lab.yaml'), stringify({ ...small, clusters: [cluster] }));
  const tls = { cert: 'chain.pem', key: 'key.pem' };
  const more = {
    // A gateway that answers nobody without a header of a proxy is known, too.
    gateway: { ...settings.gateway, proxyProtocol: 'required' },
    trustedProxies: ['127.0.0.1'],
    metrics: { listen: `127.0.0.1:${metrics}` },
    seed: 'lab.yaml',
  };
  write({ ...more, platform: { ...settings.platform, tls } });
  await using service = serve(file);
  await service.until('serve.ready');
  const running = await check(file);
  assert.equal(running.status, 0, running.lines.join('\n'));
  const held = running.lines.filter((line) => /port .*: held by Andromeda, which runs\.$/.test(line));
  assert.equal(held.length, 5, running.lines.join('\n'));
  assert.match(
    running.lines.join('\n'),
    /^ok +cluster file +gamma, kubernetes\.kubeconfig: \/.*\/kubeconfig\.$/m,
  );
  assert.deepEqual(service.events('http.connection.refused'), [], 'each was asked as it is');
  const before = readFileSync(file);
  write({ ...more, business: { ...settings.business, tls } });
  const ports = (await check(file)).lines.filter((line) => / port /.test(line));
  assert.equal(ports.length, 5);
  for (const line of ports) assert.match(line, /held by Andromeda, which runs\.$/);
  writeFileSync(file, before);
  await service.stop();
  const data = contents(join(path, 'data'));
  chmodSync(join(path, 'kubeconfig'), 0o644);
  const stopped = await check(file);
  const kubeconfig = stopped.lines.filter((line) =>
    /^wrong +cluster file +(\S+\/lab\.yaml:\d+: )?gamma, .* can be read by everybody/.test(line),
  );
  assert.equal(kubeconfig.length, 2, 'as the seed names it, and as the database does');
  assert.equal(stopped.status, 1);
  assert.deepEqual(contents(join(path, 'data')), data);
});

test('a database that is missing where there are keys, or none, or not this account’s to write is wrong', async (t) => {
  await using opened = await openTestStore();
  await opened.store.close();
  const { path, file, write } = await installation(t);
  const data = join(path, 'data');
  const wrongs = async () => (await check(file, '--quiet')).lines.join('\n').replaceAll(path, '');
  mkdirSync(join(data, 'keys'), { recursive: true, mode: 0o700 });
  chmodSync(data, 0o711);
  assert.match(
    await wrongs(),
    /^wrong +database +\/data\/andromeda\.db is not there, and there are keys of an installation beside it\. /,
  );
  writeFileSync(join(data, 'andromeda.db'), 'not a database', { mode: 0o600 });
  assert.match(await wrongs(), /^wrong +database +\/data\/andromeda\.db is no database of SQLite\. /);
  const whole = readFileSync(join(opened.dataDir, 'andromeda.db'));
  writeFileSync(join(data, 'andromeda.db'), Buffer.from(whole).fill('Z', 100));
  assert.match(await wrongs(), /^wrong +database +\/data\/andromeda\.db is damaged\. Restore a backup /);
  writeFileSync(join(data, 'andromeda.db'), whole);
  assert.equal(await wrongs(), '');
  truncateSync(join(data, 'andromeda.db'), 513 * 2 ** 20);
  assert.match(
    await wrongs(),
    /^warn +database +\/data\/andromeda\.db, .*: not read, because it is too large/,
  );
  writeFileSync(join(data, 'andromeda.db'), whole);
  const database = new Database(join(data, 'andromeda.db'));
  database.exec(ancient);
  assert.match(
    await wrongs(),
    /^wrong +database +\/data\/andromeda\.db was written by a version of Andromeda before 0\.3\.0/,
  );
  database.exec(`update kysely_migration set name = '${newest}'`);
  database.close();
  chmodSync(data, 0o777);
  assert.match(await wrongs(), /^wrong +data +\/data can be written by others\. chmod go-w \/data$/);
  write({ dataDir: 'a/b' });
  assert.match(
    await wrongs(),
    /^wrong +data +\/andromeda.yaml:11: dataDir: \/a\/b is not there, and cannot be made: \/a is missing/,
  );
});

test('a seed is said to be ignored where the database was filled without it', async (t) => {
  const { path, file, write } = await installation(t);
  const data = join(path, 'data');
  mkdirSync(data, { mode: 0o711 });
  writeFileSync(join(path, 'lab.yaml'), stringify(small));
  write({ seed: 'lab.yaml' });
  const about = async () => (await check(file)).lines.filter((line) => / seed /.test(line));
  for (const isBootstrapped of [false, true]) {
    const store = await openStore(data);
    if (isBootstrapped)
      await store.write(
        async (tx) => void (await createPerson(tx, { email: 'ada@physics.example', displayName: 'Ada' })),
      );
    await store.close();
    const lines = await about();
    assert.equal(lines.length, isBootstrapped ? 2 : 1, lines.join('\n'));
    if (isBootstrapped) assert.match(lines[1] ?? '', /^warn +seed +\S+lab\.yaml is ignored: /);
  }
  for (const name of readdirSync(data)) rmSync(join(data, name));
  const store = await openStore(data);
  await createInstallation(store, small, 'lab.yaml');
  await store.close();
  assert.equal((await about()).length, 1, 'it was the seed that filled it');
});

test('rules for groups name organizations that are in the database', async (t) => {
  const { path, file, write } = await installation(t);
  const store = await openStore(join(path, 'data'));
  await createInstallation(store, small, 'lab.yaml');
  await store.close();
  const said = async (organization: string) => {
    const groups = { claim: 'groups', rules: [{ group: 'a', organization }] };
    write({ identity: { issuer: 'https://login.example.org', groups } });
    return (await check(file)).lines.filter((line) => / groups /.test(line));
  };
  assert.match(
    (await said('physics')).join(),
    /^ok +groups +Every rule for groups names an organization that is there\.$/,
  );
  assert.match(
    (await said('phsyics')).join(),
    /^wrong +groups +\S+andromeda\.yaml:\d+: identity\.groups\.rules\[0\]\.organization: there is no organization phsyics\./,
  );
});

testAsRoot('root looks with the eyes of the account that the service runs as', async (t) => {
  const { path, file } = await installation(t);
  // It becomes that account for good.
  const asProcess = (config: string) =>
    spawnSync(program, ['check', '--config', config], { encoding: 'utf8', timeout: limit(60_000) });
  chmodSync(path, 0o755);
  mkdirSync(join(path, 'data'), { mode: 0o711 });
  chownSync(join(path, 'data'), 65534, 65534);
  const first = asProcess(file);
  assert.equal(first.status, 1);
  assert.match(first.stdout, /^wrong {2}settings +Cannot read \S+andromeda\.yaml: this account may not\.$/m);
  chownSync(file, 65534, 65534);
  assert.equal(asProcess(file).status, 0);
});

test('a person whose client runs on the service’s host, and who may not read its settings, gets the doctor of the client', {
  skip: process.getuid?.() !== 0 && 'needs root',
}, async (t) => {
  const { path } = await installation(t);
  chmodSync(path, 0o755);
  const run = spawnSync(program, ['doctor'], {
    encoding: 'utf8',
    cwd: path,
    uid: 65534,
    env: { PATH: process.env['PATH'], XDG_STATE_HOME: join(path, 'none') },
  });
  assert.match(run.stdout + run.stderr, /^wrong +address +None is known for the profile 'default'\.$/m);
  assert.doesNotMatch(run.stdout + run.stderr, /EACCES|this account may not/);
});

test('admin bootstrap finds the installation by itself, as the other commands of the host do', async (t) => {
  const { path } = await installation(t, { identity: { issuer: 'https://login.example' } });
  const run = spawnSync(program, ['admin', 'bootstrap', '--email', 'ada@physics.example'], {
    encoding: 'utf8',
    cwd: path,
  });
  assert.equal(run.status, 0, run.stderr);
  assert.match(run.stdout, /^ada@physics\.example is an operator of this installation\./);
  assert.match(run.stdout, /andromeda serve --config andromeda\.yaml$/m);
});
