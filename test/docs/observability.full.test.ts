/** Faults of a service, and of its host, make the alerts that are for them: its own metrics, as Prometheus reads them by the alert rules. */
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
import { stringify } from 'yaml';
import { createLogger, type Logger } from '../../src/lib/log.ts';
import { noteBackupFailure } from '../../src/store/data-dir/last-backup.ts';
import { startFakeApi } from '../kubernetes/fake-api.ts';
import { alpha, eventually, physics, startTestApp } from '../support/app.ts';
import { createAuthority } from '../support/certificate.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { freePorts } from '../support/ports.ts';
import { keygen } from '../support/ssh-keys.ts';

const rulesFile = join(import.meta.dirname, '../../docs/observability/alerts.yaml');
const promtool = '/usr/bin/promtool';
const skip = spawnSync(promtool, ['--version']).status !== 0 && `${promtool} is not installed`;

// What the process may open is read once, by the first service that starts here.
limitFiles(700);

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
    await refuseLogins(place.path, gatewayPort, 12);
    await until(/^andromeda_gateway_logins_total\{result="refused",reason="\w+"\} 12$/m);
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

/** Tries to log in this many times with a key that is not registered. */
async function refuseLogins(directory: string, port: number, times: number): Promise<void> {
  const key = join(directory, 'unknown_key');
  writeFileSync(key, keygen('-t', 'ed25519').privateKey, { mode: 0o600 });
  const settings = ['BatchMode=yes', 'IdentitiesOnly=yes', 'StrictHostKeyChecking=no'];
  const options = [...settings, 'UserKnownHostsFile=/dev/null'].flatMap((one) => ['-o', one]);
  const args = ['-F', 'none', ...options, '-i', key, '-p', `${port}`, '-l', `${alpha}.bob`, '127.0.0.1'];
  for (let left = times; left > 0; left -= 1)
    await assert.rejects(promisify(execFile)('ssh', args), /Permission denied/);
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
 * between the two goes on to be, every ten seconds.
 */
function firing(directory: string, before: string, after: string): string[] {
  const [first, last] = [samples(before), samples(after)];
  const series = [...new Set([...first.keys(), ...last.keys()])].map((name) => {
    const [from, to] = [first.get(name), last.get(name)];
    const isCount = /^\w+_(total|bucket|count|sum)\{/.test(name);
    const step = isCount && to !== undefined ? Math.max(0, to - (from ?? 0)) : 0;
    return { series: name, values: `${from ?? '_'}x720 ${to === undefined ? '_x449' : `${to}+${step}x449`}` };
  });
  const file = join(directory, 'test.yaml');
  const expected = 'count by (alertname) (max_over_time(ALERTS{alertstate="firing"}[75m]))';
  const rules = (found: string[]) => ({
    rule_files: [rulesFile],
    evaluation_interval: '1m',
    tests: [
      {
        interval: '10s',
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
  const wanted = new Set(readFileSync(rulesFile, 'utf8').match(/\b(?:andromeda|process|nodejs)_\w+/g));
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
