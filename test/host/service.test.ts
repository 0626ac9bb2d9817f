/** `andromeda service`: what it would do and does, what systemd thinks of the unit, and when `rollback` is refused. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, chownSync, existsSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import type { AuditEntry } from '../../src/domain/audit/audit.ts';
import type { SchemaState } from '../../src/service/host/unit/schema-process.ts';
import { unitFiles, unitText } from '../../src/service/host/unit/service-unit.ts';
import { lossOf, requireNothingDone } from '../../src/service/host/unit/upgrade.ts';
import { appendAuditEntry } from '../../src/store/audit/audit.ts';
import { copyOf, listWrittenSince } from '../../src/store/data-dir/before-upgrade.ts';
import { openStore } from '../../src/store/data-dir/open-store.ts';
import { systemUserId } from '../../src/store/people/people.ts';
import { startTestApp } from '../support/app.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { freePorts } from '../support/ports.ts';
import { runProgram } from '../support/program.ts';
import { laterVersion, placeSchema, newest as schema } from '../support/schemas.ts';

const root = join(import.meta.dirname, '../..');
const analyze = '/usr/bin/systemd-analyze';
const noSystemd = !existsSync(analyze) && `${analyze} is not installed`;
const options = {
  program: '/bin/true',
  config: '/etc/andromeda/andromeda.yaml',
  user: 'root',
  writable: [],
  drainMs: 0,
};

const service = (...args: string[]) => runProgram('service', ...args);

/** Writes the units into a directory. Returns their files. */
const writeUnits = (directory: string, changed: object) =>
  unitFiles({ ...options, ...changed }).map(([name, text]) => {
    const file = join(directory, name);
    writeFileSync(file, text);
    return file;
  });

test('systemd-analyze verify finds nothing wrong with the units', { skip: noSystemd }, () => {
  using directory = temporaryDirectory();
  for (const writable of [[], ['/srv/a b/andromeda', '/srv/audit']]) {
    const files = writeUnits(directory.path, { writable });
    const { status, stderr } = spawnSync(analyze, ['verify', '--man=no', ...files], { encoding: 'utf8' });
    assert.deepEqual([status, stderr], [0, '']);
  }
});

test('systemd-analyze security finds little that the service and its gateway could do besides their work', {
  skip: noSystemd,
}, () => {
  using directory = temporaryDirectory();
  const files = writeUnits(directory.path, { user: 'andromeda' }).filter((file) => file.endsWith('.service'));
  assert.equal(files.length, 2);
  for (const file of files) {
    const said = execFileSync(analyze, ['security', '--no-pager', '--offline=true', file], {
      encoding: 'utf8',
    });
    const [, exposure] = /Overall exposure level for andromeda.*\.service: ([\d.]+)/.exec(said) ?? [];
    assert.ok(Number(exposure) < 2, `${exposure}\n${said}`);
  }
});

test('the unit runs the service as its own account, with its directories and next to no rights', () => {
  const unit = unitText({ ...options, program: '/opt/with space/andromeda', user: 'gate' });
  for (const line of [
    'ExecStart="/opt/with space/andromeda" serve --config /etc/andromeda/andromeda.yaml',
    'ExecStartPre=-"/opt/with space/andromeda" check --quiet --config /etc/andromeda/andromeda.yaml',
    'ExecReload="/opt/with space/andromeda" service reload --config /etc/andromeda/andromeda.yaml',
    'Type=notify',
    'RestartPreventExitStatus=69 78',
    'RestartKillSignal=SIGUSR2',
    'KillMode=process',
    'User=gate',
    'StateDirectory=andromeda',
    'CacheDirectory=andromeda',
    'ProtectSystem=strict',
    'NoNewPrivileges=yes',
    'CapabilityBoundingSet=CAP_NET_BIND_SERVICE',
  ])
    assert.ok(unit.split('\n').includes(line), line);
  assert.doesNotMatch(unit, /ReadWritePaths/);
  assert.match(unitText({ ...options, drainMs: 3_600_500 }), /^TimeoutStopSec=3631$/m);
  assert.match(unitText({ ...options, writable: ['/srv/andromeda'] }), /^ReadWritePaths=\/srv\/andromeda$/m);
});

test('service print prints the units', async () => {
  const { status, out, err } = await service('print');
  const program = join(root, 'scripts/andromeda');
  const files = unitFiles({ ...options, program, user: 'andromeda' });
  if (status === 0)
    assert.equal(out, files.map(([name, text]) => `# /etc/systemd/system/${name}\n${text}`).join('\n'));
  else assert.match(err, /is a checkout out of the service's reach/);
  const wrong = await service('print', '--user', 'a b');
  assert.deepEqual([wrong.status, wrong.err], [1, 'andromeda: "a b" is not a name for an account.\n']);
  const lines = await service('print', '--config', '/etc/a\nUser=root');
  const sentence = 'andromeda: The path of a configuration has no control characters.\n';
  assert.deepEqual([lines.status, lines.out, lines.err], [1, '', sentence]);
});

test('service install --dry-run says what it would do, and does nothing', async () => {
  const before = existsSync('/etc/systemd/system/andromeda.service');
  const { status, out, err } = await service('install', '--dry-run');
  assert.equal(existsSync('/etc/systemd/system/andromeda.service'), before);
  if (status !== 0) return assert.match(err, /is a checkout out of the service's reach/);
  assert.match(out, /^This would\n\n( {2}- .*\n)* {2}- write \/etc\/systemd\/system\/andromeda\.service\n/);
  assert.match(out, /\n\[Unit\]\n/);
});

test('a checkout is not installed into an image', async () => {
  using directory = temporaryDirectory();
  const { status, err } = await service('install', '--root', directory.path);
  assert.equal(status, 1);
  assert.match(err, /^andromeda: .* Install the executable of `npm run build`\.\n$/);
});

test('service ready ends with 0 where the service of the configuration serves, and says that it does not', async () => {
  using directory = temporaryDirectory();
  const file = join(directory.path, 'andromeda.yaml');
  const [free = 0] = await freePorts(1);
  const ask = async (url: string) => {
    const at = { listen: new URL(url).host, url };
    const other = { listen: '127.0.0.1:1', url: 'http://127.0.0.1:1' };
    const config = { dataDir: './data', platform: other, business: at, gateway: { listen: '127.0.0.1:2' } };
    writeFileSync(file, JSON.stringify({ ...config, identity: { issuer: 'http://127.0.0.1:3' } }));
    const { status, out, err } = await runProgram('service', 'ready', '--config', file);
    return `${status} ${out}${err}`;
  };
  {
    await using app = await startTestApp();
    assert.equal(await ask(app.businessUrl), '0 The service serves.\n');
  }
  const nobody = `1 andromeda: No service of ours answers at 127.0.0.1:${free}.\n`;
  assert.equal(await ask(`http://127.0.0.1:${free}`), nobody);
});

test('a copy that cannot be read or is not whole, and a disk without room for it, refuse the way back while the service runs', {
  skip: process.getuid?.() !== 0 && 'needs root',
}, async () => {
  using directory = temporaryDirectory();
  const dataDir = join(directory.path, 'data');
  execFileSync('mkdir', [dataDir]);
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=256m', 'tmpfs', dataDir]);
  try {
    placeSchema(dataDir, schema);
    await using _serving = await openUpgraded(dataDir);
    const config = join(directory.path, 'andromeda.yaml');
    writeFileSync(config, JSON.stringify({ dataDir: './data' }));
    const inspect = async (): Promise<{ answer?: SchemaState; refusal?: string }> => {
      const { out, err } = await runProgram('schema-process', config, 'inspect', schema);
      return JSON.parse(out || JSON.stringify({ refusal: err }));
    };
    const copy = copyOf(dataDir, schema);

    const { answer } = await inspect();
    assert.ok(answer?.written);
    assert.equal(lossOf({ version: '0.2.0', schema }, answer), answer.written);

    chmodSync(directory.path, 0o711);
    execFileSync('chown', ['-R', '65534:65534', dataDir]);
    chownSync(copy, 0, 0);
    const unreadable = { refusal: `${copy} cannot be read: this account may not. Nothing was changed.` };
    assert.deepEqual(await inspect(), unreadable);
    chownSync(copy, 65534, 65534);
    chownSync(dirname(copy), 0, 0);
    assert.deepEqual(await inspect(), unreadable);
    chownSync(dirname(copy), 65534, 65534);

    execFileSync('mount', ['-o', 'remount,size=64m', dataDir]);
    assert.match(
      (await inspect()).refusal ?? '',
      /^The disk of .* has \d+ MiB left, and 1\d\d MiB are needed\. Make room\. Nothing was changed\.$/,
    );
    execFileSync('mount', ['-o', 'remount,size=256m', dataDir]);
    for (const [size, fault] of [
      [70_000, 'is damaged; take another backup.'],
      [0, 'is not a backup of Andromeda.'],
    ] as const) {
      truncateSync(copy, size);
      assert.deepEqual(await inspect(), { refusal: `${copy} ${fault} Nothing was changed.` });
    }
    rmSync(copy);
    const gone = (await inspect()).answer;
    assert.ok(gone);
    assert.throws(
      () => lossOf({ version: '0.2.0', schema }, gone),
      /the copy of before is gone from before-upgrade\/\. Nothing was changed\.$/,
    );
  } finally {
    execFileSync('umount', ['-l', dataDir]);
  }
});

async function openUpgraded(dataDir: string) {
  const store = await openStore(dataDir, { schema: laterVersion });
  return { store, [Symbol.asyncDispose]: () => store.close() };
}

test('what the service writes by itself, and refusals, keep no failed upgrade in place; what people did does', async () => {
  using directory = temporaryDirectory();
  placeSchema(directory.path, schema);
  await using serving = await openUpgraded(directory.path);
  const write = (operation: string, result = 'done') =>
    serving.store.write((tx) => {
      const entry: AuditEntry = { actorUserId: systemUserId, operation, target: '', reason: '', result };
      return appendAuditEntry(tx, entry);
    });
  for (const operation of ['ssh.session.opened', 'ssh.session.closed', 'deleteAuditEntries'])
    await write(operation);
  await write('ssh.login.refused', 'refused: key_revoked');
  await write('revokeSshKey', 'refused: forbidden');
  await write('furtherRefusals', 'refused');
  const byItself = listWrittenSince(directory.path, schema);
  assert.equal(byItself.entries.length, 6);
  requireNothingDone(byItself);
  await write('revokeSshKey');
  assert.throws(
    () => requireNothingDone(listWrittenSince(directory.path, schema)),
    /^DomainError: The audit trail has entries of what people did since the database was changed\./,
  );
});
