/** The alert rules and the dashboard: Prometheus takes them, they come when they should, and they ask for what the service exports. */
import assert from 'node:assert/strict';
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { get } from 'node:https';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { parse, stringify } from 'yaml';
import { createLogger, type Logger } from '../../src/lib/log.ts';
import { errorEvents } from '../../src/service/compose/metrics/error-events.ts';
import { noteBackupFailure } from '../../src/store/data-dir/last-backup.ts';
import { startFakeApi } from '../kubernetes/fake-api.ts';
import { alpha, eventually, physics, startTestApp } from '../support/app.ts';
import { createAuthority } from '../support/certificate.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { freePorts } from '../support/ports.ts';
import { keygen } from '../support/ssh-keys.ts';

const directory = join(import.meta.dirname, '../../docs/observability');
const read = (name: string) => readFileSync(join(directory, name), 'utf8');
const promtool = '/usr/bin/promtool';
const skip = spawnSync(promtool, ['--version']).status !== 0 && `${promtool} is not installed`;

interface Query {
  /** Where it stands. */
  at: string;
  expr: string;
}

/** Every query of the dashboard, with what Grafana puts into it. */
function queriesOfDashboard(): Query[] {
  const { panels, annotations } = JSON.parse(read('dashboard.json')) as {
    panels: { title: string; targets: { expr: string }[] }[];
    annotations: { list: { name: string; expr: string }[] };
  };
  const queries = [
    ...panels.flatMap(({ title, targets }) => targets.map(({ expr }) => ({ at: title, expr }))),
    ...annotations.list.map(({ name, expr }) => ({ at: name, expr })),
  ];
  return queries.map(({ at, expr }) => ({ at, expr: expr.replaceAll('$__rate_interval', '5m') }));
}

function queriesOfAlerts(): Query[] {
  const { groups } = parse(read('alerts.yaml')) as { groups: { rules: { alert: string; expr: string }[] }[] };
  return groups.flatMap(({ rules }) => rules.map(({ alert, expr }) => ({ at: alert, expr })));
}

// What the process may open is read once, by the first service that starts here.
limitFiles(700);

test('promtool takes the alert rules, and they come when they should and not on a good day', { skip }, () => {
  const { status, stdout, stderr } = spawnSync(promtool, ['test', 'rules', 'alerts.test.yaml'], {
    cwd: directory,
    encoding: 'utf8',
  });
  assert.equal(status, 0, stdout + stderr);
  execFileSync(promtool, ['check', 'rules', join(directory, 'alerts.yaml')]);
  const tested = read('alerts.test.yaml');
  for (const { at } of queriesOfAlerts()) assert.match(tested, RegExp(`"${at}"|alertname: ${at}\n`), at);
});

test('promtool can read every query of the dashboard', { skip }, () => {
  using place = temporaryDirectory();
  const file = join(place.path, 'rules.yaml');
  const rules = queriesOfDashboard().map(({ expr }, index) => ({ record: `query:${index}`, expr }));
  writeFileSync(file, stringify({ groups: [{ name: 'dashboard', rules }] }));
  const { status, stdout, stderr } = spawnSync(promtool, ['check', 'rules', file], { encoding: 'utf8' });
  assert.equal(status, 0, stdout + stderr);
});

test('alert rules and dashboard ask for what the service exports, and the page names all of that', async () => {
  using place = temporaryDirectory();
  const [port, issuer] = await freePorts(2);
  const { cert, key } = createAuthority().issue('server');
  const tls = { cert: join(place.path, 'cert.pem'), key: join(place.path, 'key.pem') };
  writeFileSync(tls.cert, cert);
  writeFileSync(tls.key, key);
  const embedded = { listen: `127.0.0.1:${issuer}`, tls };
  await using service = await startTestApp({
    identity: { embedded },
    config: { metrics: { listen: `127.0.0.1:${port}` }, audit: { file: join(place.path, 'audit.jsonl') } },
  });
  await service.business('/me');
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const exported = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].flatMap(([, name = '', type]) =>
    type === 'histogram' ? [name, `${name}_bucket`, `${name}_count`, `${name}_sum`] : [name],
  );
  const asked = (expr: string) => expr.match(/\b(?:andromeda|process|nodejs)_\w+/g) ?? [];
  for (const { at, expr } of [...queriesOfAlerts(), ...queriesOfDashboard()])
    for (const name of asked(expr)) assert.ok(exported.includes(name), `${at}: ${name}`);

  const page = read('README.md');
  const own = [...text.matchAll(/^# TYPE (andromeda_\S+) /gm)].map(([, name = '']) => name);
  assert.ok(own.length > 15);
  const rows = page.match(/^\| `andromeda_\w+/gm)?.map((row) => row.slice(3));
  assert.deepEqual(rows?.toSorted(), own.toSorted());
  if (!skip)
    execFileSync(promtool, ['check', 'metrics'], {
      input: text.replace(/^(# (TYPE|HELP) )?nodejs_.*\n/gm, ''),
    });
});

test('every event that is logged as an error is counted from 0', () => {
  const src = join(import.meta.dirname, '../../src');
  const texts = readdirSync(src, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => readFileSync(join(src, name), 'utf8'));
  const logged = texts.flatMap((text) =>
    [...text.matchAll(/\.error\(\s*'([\w.]+)'/g)].map(([, name]) => name),
  );
  // Their names or levels are put together.
  const others = [
    'database.former_primary',
    'gateway.process.ended',
    'http.unready',
    'sync.notice.failed',
    'sync.sweep.failed',
  ];
  assert.deepEqual([...errorEvents].sort(), [...new Set([...logged, ...others])].sort());
});

/** What a host is like from the start: full, with a certificate that has ended, which is an error, and without any backup. */
const ofHost = [
  'AndromedaBackupOld',
  'AndromedaCertificateEnded',
  'AndromedaCertificateEnding',
  'AndromedaDiskNearlyFull',
  'AndromedaErrors',
];

test("the service's own metrics make the alerts of the faults that are made", {
  skip: skip || (process.getuid?.() !== 0 && 'a small disk takes root'),
}, async (t) => {
  using place = temporaryDirectory();
  using _disk = smallDisk(place.path);
  const [port, gatewayPort = 0] = await freePorts(2);
  const tls = { cert: join(place.path, 'cert.pem'), key: join(place.path, 'key.pem') };
  const { cert, key } = createAuthority().issue('server', -60_000);
  writeFileSync(tls.cert, cert);
  writeFileSync(tls.key, key);
  const api = await startFakeApi();
  t.after(() => api.stop());
  writeFileSync(join(place.path, 'ca.pem'), api.authority.ca);
  writeFileSync(join(place.path, 'token'), 'andromeda', { mode: 0o600 });
  const trail = join(place.path, 'audit.jsonl');
  const pids: number[] = [];
  const quiet = createLogger('silent');
  const log: Logger = {
    ...quiet,
    info(event, fields) {
      if (event === 'gateway.process.started') pids.push((fields as { pid: number }).pid);
    },
  };
  const slow = {
    name: 'slow',
    organization: 'physics',
    scheduler: 'sunk' as const,
    simulated: { computeNodes: 1, gpusPerNode: 1, applyMs: 600_000 },
  };
  const gone = {
    name: 'gone',
    organization: 'physics',
    scheduler: 'kubernetes' as const,
    kubernetes: {
      server: api.url,
      tokenFile: join(place.path, 'token'),
      certificateAuthority: join(place.path, 'ca.pem'),
    },
  };
  const service = await startTestApp({
    log,
    lab: { ...physics, clusters: [slow, gone] },
    config: {
      metrics: { listen: `127.0.0.1:${port}`, tls },
      gateway: {
        listen: `127.0.0.1:${gatewayPort}`,
        processes: 1,
        limits: { backoffAfterFailures: 1_000 },
      },
      audit: { file: trail },
    },
  });
  const ask = async () => {
    const [response] = (await once(
      get(`https://127.0.0.1:${port}/metrics`, { rejectUnauthorized: false, agent: false }),
      'response',
    )) as [IncomingMessage];
    return text(response);
  };
  // A busy machine holds up the loop, and with it requests, of its own accord.
  const delays = /^(?:nodejs_eventloop_lag_p99_seconds|andromeda_http_request_seconds_bucket)\b.*$/gm;
  const scrape = async () => (await ask()).replace(delays, '');
  const until = (...lines: RegExp[]) => eventually(scrape, (said) => lines.every((line) => line.test(said)));
  const data = join(service.dataDir, 'data');
  try {
    await until(/^andromeda_gateway_up 1$/m, /^andromeda_audit_file_up\S+ 1$/m, /side="kubernetes"\} /);
    await service.business('/me', { as: 'ada' });
    const good = await scrape();
    assert.deepEqual(firing(place.path, good, good), ofHost);

    rmSync(trail);
    mkdirSync(trail);
    await api.stop();
    await service.write('/me/ssh-keys', {
      as: 'bob',
      body: { public_key: keygen('-t', 'ed25519').publicKey },
    });
    await until(/^andromeda_audit_file_up\S+ 0$/m);
    service.advance(1_000_000);
    truncateSync(join(data, 'andromeda.db-wal'), 300 * 2 ** 20);
    noteBackupFailure(data, { at: new Date().toISOString(), failures: 2, message: 'The disk is full.' });
    await refuseLogins(place.path, gatewayPort, 70);
    await until(/^andromeda_gateway_logins_total\{result="refused",reason="\w+"\} 70$/m);
    const pid = pids.at(-1) ?? assert.fail('no gateway process');
    process.kill(pid, 'SIGSTOP');
    const silent = await until(/^andromeda_gateway_unreached 1$/m);
    const { body } = await service.business('/operator/problems', { as: 'root' });
    process.kill(pid, 'SIGCONT');
    const unreached = body.problems.find(
      ({ about }: { about: string }) => about === `Gateway process ${pid}`,
    );
    assert.deepEqual([unreached?.area, unreached?.urgency], ['gateway', 'now']);
    assert.match(unreached.message, /has not confirmed a revocation/);
    assert.deepEqual(others(firing(place.path, good, silent)), [
      'AndromedaAuditNotCopied',
      'AndromedaBackupFails',
      'AndromedaChangesWait',
      'AndromedaClusterBehind',
      'AndromedaClusterUnseen',
      // It was the only one.
      'AndromedaGatewayDown',
      'AndromedaGatewayUnreached',
      'AndromedaLoginsRefused',
      'AndromedaWalGrows',
    ]);

    await until(/^andromeda_gateway_unreached 0$/m);
    const before = await scrape();
    const headers = {
      authorization: `Bearer ${await service.issuer.token('ada')}`,
      'content-type': 'application/json',
      'content-length': 2,
      'idempotency-key': 'slow',
      'audit-reason': 'a test',
    };
    const late = request(`${service.businessUrl}/me/ssh-keys`, { method: 'POST', headers });
    late.flushHeaders();
    await new Promise((done) => setTimeout(done, 100));
    const stuck = performance.now();
    while (performance.now() - stuck < 2_600);
    late.end('{}');
    const [answer] = (await once(late, 'response')) as [IncomingMessage];
    await text(answer);
    const held = (await ask()).match(delays) ?? assert.fail('no figures of delays');
    // The next process does not find the service.
    rmSync(join(data, 'run'), { recursive: true });
    process.kill(pids.at(-1) ?? 0, 'SIGKILL');
    renameSync(join(data, 'andromeda.db'), join(data, 'elsewhere.db'));
    const key = { public_key: keygen('-t', 'ed25519').publicKey };
    for (let n = 0; n < 3; n += 1)
      assert.equal((await service.write('/me/ssh-keys', { as: 'ada', body: key })).status, 503);
    const files = Array.from({ length: 640 - readdirSync('/proc/self/fd').length }, () =>
      openSync('/dev/null', 'r'),
    );
    await until(/^andromeda_gateway_up 0$/m, /event="gateway.process.ended"\} [1-9]/);
    const bad = [await scrape(), ...held].join('\n');
    for (const file of files) closeSync(file);
    renameSync(join(data, 'elsewhere.db'), join(data, 'andromeda.db'));
    const known = firing(place.path, before, before);
    assert.deepEqual(
      firing(place.path, before, bad).filter((name) => !known.includes(name)),
      [
        'AndromedaApiFailing',
        'AndromedaApiSlow',
        'AndromedaEventLoopSlow',
        'AndromedaFilesRunOut',
        'AndromedaGatewayDown',
      ],
    );
  } finally {
    await service[Symbol.asyncDispose]();
  }
  const down = await scrape().then(
    () => assert.fail('it still answers'),
    () => '',
  );
  assert.deepEqual(firing(place.path, down, down), ['AndromedaDown']);
});

/** Logs in so many times with a key that nobody registered. */
async function refuseLogins(directory: string, port: number, times: number): Promise<void> {
  const key = join(directory, 'unknown_key');
  writeFileSync(key, keygen('-t', 'ed25519').privateKey, { mode: 0o600 });
  const settings = ['BatchMode=yes', 'IdentitiesOnly=yes', 'StrictHostKeyChecking=no'];
  const options = [...settings, 'UserKnownHostsFile=/dev/null'].flatMap((one) => ['-o', one]);
  const args = ['-F', 'none', ...options, '-i', key, '-p', `${port}`, '-l', `${alpha}.bob`, '127.0.0.1'];
  let left = times;
  const logIn = async () => {
    while (left-- > 0) await assert.rejects(promisify(execFile)('ssh', args), /Permission denied/);
  };
  await Promise.all([logIn(), logIn(), logIn(), logIn()]);
}

/** A disk of half a GiB that is TMPDIR. */
function smallDisk(directory: string): Disposable {
  const { TMPDIR = '/tmp' } = process.env;
  const path = join(directory, 'disk');
  mkdirSync(path);
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=512m,mode=1777', 'disk', path]);
  process.env['TMPDIR'] = path;
  return {
    [Symbol.dispose]() {
      process.env['TMPDIR'] = TMPDIR;
      execFileSync('umount', [path]);
    },
  };
}

/** This process may have so many files open. */
function limitFiles(most: number): void {
  execFileSync('prlimit', [`--pid=${process.pid}`, `--nofile=${most}:`]);
}

const others = (names: readonly string[]) => names.filter((name) => !ofHost.includes(name));

/**
 * The alerts of Prometheus that come within 75 minutes of the second text of metrics, after two hours of the first. What was counted
 * between the two goes on to be, each minute.
 */
function firing(directory: string, before: string, after: string): string[] {
  const [first, last] = [samples(before), samples(after)];
  const series = [...new Set([...first.keys(), ...last.keys()])].map((name) => {
    const [from, to] = [first.get(name), last.get(name)];
    const isCount = /^\w+_(total|bucket|count|sum)\{/.test(name);
    const step = isCount && to !== undefined ? Math.max(0, to - (from ?? 0)) : 0;
    return { series: name, values: `${from ?? '_'}x120 ${to === undefined ? '_x74' : `${to}+${step}x74`}` };
  });
  const file = join(directory, 'test.yaml');
  const expected = 'count by (alertname) (max_over_time(ALERTS{alertstate="firing"}[75m]))';
  const rules = (found: string[]) => ({
    rule_files: [join(import.meta.dirname, '../../docs/observability/alerts.yaml')],
    evaluation_interval: '1m',
    tests: [
      {
        interval: '1m',
        input_series: series,
        promql_expr_test: [
          {
            expr: expected,
            eval_time: `${evaluatedAt / 60}m`,
            exp_samples: found.map((name) => ({ labels: `{alertname="${name}"}`, value: 1 })),
          },
        ],
      },
    ],
  });
  // promtool compares, and says in words what it found instead.
  writeFileSync(file, stringify(rules(['none'])));
  const { stdout, stderr } = spawnSync(promtool, ['test', 'rules', file], { encoding: 'utf8' });
  const found = /got:(.*)/.exec(stdout + stderr)?.[1] ?? assert.fail(stdout + stderr);
  return [...new Set([...found.matchAll(/alertname=\\?"(\w+)/g)].map(([, name = '']) => name))].sort();
}

/** In seconds of promtool's clock, which begins at 0. */
const evaluatedAt = 195 * 60;

/** Values by series, of this job, of what alerts ask for; a time of the day is as far away as it is now. */
function samples(text: string): Map<string, number> {
  const wanted = new Set(
    queriesOfAlerts().flatMap(({ expr }) => expr.match(/\b(?:andromeda|process|nodejs)_\w+/g) ?? []),
  );
  const named = [...text.matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/gm)].flatMap(
    ([, name = '', labels = '', value = '']): [string, number][] => {
      if (!wanted.has(name)) return [];
      const isTime = /_timestamp_seconds$|_start_time_seconds$/.test(name);
      const shift = isTime ? evaluatedAt - Date.now() / 1000 : 0;
      const all = [labels, 'job="andromeda"', 'instance="a"'].filter(Boolean).join(', ');
      return [[`${name}{${all}}`, Math.round((Number(value) + shift) * 1000) / 1000]];
    },
  );
  return new Map([['up{job="andromeda", instance="a"}', text === '' ? 0 : 1], ...named]);
}
