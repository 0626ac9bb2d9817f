/**
 * The alert rules and the dashboard: Prometheus takes them, they come when they should, and they ask for what the service exports. Those
 * that faults of a service make are in observability.full.test.ts.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse, stringify } from 'yaml';
import { errorEvents } from '../../src/service/compose/metrics/metric-kinds.ts';
import { startTestApp } from '../support/app.ts';
import { createAuthority } from '../support/certificate.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { freePorts } from '../support/ports.ts';

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
