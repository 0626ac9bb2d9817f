/** `andromeda serve` on bad days: every fault is one sentence and a proper exit status, never a stack trace. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import Database from 'better-sqlite3';
import { stringify } from 'yaml';
import { eventually } from '../support/app.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { freePorts } from '../support/ports.ts';
import { program } from '../support/program.ts';
import { ancient, damageTable } from '../support/schemas.ts';

interface Run {
  stderr(): string;
  kill(signal: NodeJS.Signals): void;
  exited: Promise<{ code: number | null; ms: number }>;
}

function serve(...args: string[]): Run {
  const started = performance.now();
  const child = spawn(program, ['serve', ...args], { stdio: ['ignore', 'ignore', 'pipe'] });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (part) => {
    stderr += part;
  });
  const limit = setTimeout(() => child.kill('SIGKILL'), 20_000);
  return {
    stderr: () => stderr,
    kill: (signal) => child.kill(signal),
    exited: new Promise((done) =>
      child.on('close', (code) => {
        clearTimeout(limit);
        done({ code, ms: performance.now() - started });
      }),
    ),
  };
}

async function writeConfig(directory: string, extra: object = {}) {
  const [platform, business, gateway, issuer] = await freePorts(4);
  const settings = {
    platform: { listen: `127.0.0.1:${platform}` },
    business: { listen: `127.0.0.1:${business}` },
    gateway: { listen: `127.0.0.1:${gateway}` },
    identity: { embedded: { listen: `127.0.0.1:${issuer}` } },
    ...extra,
  };
  const file = join(directory, 'andromeda.yaml');
  writeFileSync(file, stringify(settings));
  return { file, platform, business, gateway };
}

/** It ends with that status, and the last line of its log says why. Every line is JSON. */
async function refused(run: Run, sentence: RegExp, status = 78): Promise<void> {
  const { code } = await run.exited;
  assert.equal(code, status, run.stderr());
  const lines = run
    .stderr()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
  const failed = lines.filter(({ event }) => event === 'serve.failed');
  assert.deepEqual([failed.length, failed[0]?.level, failed[0]?.status], [1, 'error', status]);
  assert.match(failed[0]?.message, sentence);
  assert.doesNotMatch(run.stderr(), /\bat .*:\d+:\d+|node_modules/, 'no stack trace');
}

test('a port in use is named, and which part wanted it', async () => {
  using directory = temporaryDirectory();
  const { file, gateway, platform } = await writeConfig(directory.path);
  for (const [port, sentence] of [
    [platform, /Platform API cannot start: 127\.0\.0\.1:\d+ is in use/],
    [gateway, /SSH gateway cannot start: 127\.0\.0\.1:\d+ is in use/],
  ] as const) {
    const other = createServer();
    await new Promise<void>((done) => other.listen(port, '127.0.0.1', done));
    try {
      await refused(serve('--config', file), sentence, 69);
    } finally {
      await new Promise((done) => other.close(done));
    }
  }
});

test('a configuration that is missing, unreadable or wrong is refused with its name', async () => {
  using directory = temporaryDirectory();
  await refused(
    serve('--config', join(directory.path, 'nothing.yaml')),
    /nothing\.yaml: there is no such file/,
  );
  const { file } = await writeConfig(directory.path, { sink: {} });
  await refused(serve('--config', file), /andromeda\.yaml:\d+: sink is not a setting/);
  const seed = await writeConfig(directory.path, { seed: './lab.yaml' });
  writeFileSync(join(directory.path, 'lab.yaml'), 'organizations: [{ slug: a, name: A, members: [] }]');
  await refused(serve('--config', seed.file), /lab\.yaml:1: Organization a needs an owner/);
  assert.ok(!existsSync(join(directory.path, 'data/andromeda.db')), 'nothing was made');
});

test('a data directory of a newer version, of one before 0.3.0, or one in use, is left alone', async () => {
  using directory = temporaryDirectory();
  const { file } = await writeConfig(directory.path);
  const first = serve('--config', file);
  await eventually(
    async () => first.stderr(),
    (text) => text.includes('serve.ready'),
  );
  const { file: other } = await writeConfig(directory.path);
  await refused(serve('--config', other), /Another Andromeda serves from/);
  first.kill('SIGTERM');
  assert.equal((await first.exited).code, 0);

  const database = new Database(join(directory.path, 'data/andromeda.db'));
  database.exec("insert into kysely_migration values ('9999-from-the-future', '2030-01-01T00:00:00Z')");
  await refused(serve('--config', other), /written by a newer version/);
  database.exec(`delete from kysely_migration where name like '9999%'; ${ancient}`);
  database.close();
  await refused(
    serve('--config', other),
    /written by a version of Andromeda before 0\.3\.0, which this one cannot read\. Start that version again; or /,
  );
});

test('a damaged page that a start needs ends it for good', async () => {
  using directory = temporaryDirectory();
  const { file } = await writeConfig(directory.path);
  const first = serve('--config', file);
  await eventually(
    async () => first.stderr(),
    (text) => text.includes('serve.ready'),
  );
  first.kill('SIGTERM');
  await first.exited;
  for (const table of ['counters', 'kysely_migration']) {
    damageTable(join(directory.path, 'data/andromeda.db'), table);
    await refused(
      serve('--config', file),
      /database .*is damaged.*(restore a backup|backup has to be restored)/,
    );
  }
});

test('a data directory that cannot be made is named', async () => {
  using directory = temporaryDirectory();
  writeFileSync(join(directory.path, 'data'), 'a file where the directory should be');
  const { file } = await writeConfig(directory.path);
  await refused(serve('--config', file), /data directory .* cannot be made/);
});

test('SIGTERM stops it although connections are open, and it says so', async () => {
  using directory = temporaryDirectory();
  const { file, business, gateway } = await writeConfig(directory.path);
  const run = serve('--config', file);
  await eventually(
    async () => run.stderr(),
    (text) => text.includes('serve.ready'),
  );
  const { connect } = await import('node:net');
  const sockets = [business, gateway].map((port) => connect(Number(port), '127.0.0.1'));
  for (const socket of sockets) socket.on('error', () => {});
  sockets[0]?.write('GET /me HTTP/1.1\r\nhost: x\r\n');
  await new Promise((done) => setTimeout(done, 300));
  run.kill('SIGTERM');
  const { code } = await run.exited;
  assert.equal(code, 0, run.stderr());
  assert.match(run.stderr(), /"Stopping \(SIGTERM\)…"[\s\S]*"Stopped\."\}\n$/);
  for (const line of run.stderr().trimEnd().split('\n')) JSON.parse(line);
  for (const socket of sockets) socket.destroy();
});
