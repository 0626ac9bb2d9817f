/** `andromeda service`: what it would do, does, and what systemd thinks of the unit. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { unitFiles, unitText } from '../../src/service/host/unit/service-unit.ts';
import { startTestApp } from '../support/app.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { freePorts } from '../support/ports.ts';
import { runProgram } from '../support/program.ts';

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
