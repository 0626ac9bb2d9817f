/** `check` and `serve` agree on what keeps a service from starting, and what fails behind that ends it with a line of its log. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryDirectory } from '../support/directory.ts';
import { limit } from '../support/limit.ts';
import { runProgram } from '../support/program.ts';
import { serve, writeSettings } from '../support/service-process.ts';
import { testOnFile } from '../support/store.ts';

testOnFile('what check calls wrong is refused with 78, and a warning is none', async () => {
  using directory = temporaryDirectory();
  const { file, write } = await writeSettings(directory.path);
  const data = join(directory.path, 'data');
  const check = () => runProgram('check', '--quiet', '--config', file);
  async function starts() {
    await using service = serve(file);
    await service.until('serve.ready');
  }
  await starts();

  async function isRefused(sentence: string) {
    const { status, out } = await check();
    assert.deepEqual([status, out.includes(sentence)], [1, true], out);
    await using service = serve(file);
    await service.ended;
    const [failed] = service.events('serve.failed');
    assert.equal(failed?.['status'], 78, service.log());
    assert.ok(String(failed?.['message']).includes(sentence), service.log());
  }

  const kinds = {
    'reload.sock': 'is a directory',
    lock: 'is a directory',
    'andromeda.db-shm': 'is a directory',
    run: 'has to be a directory',
  };
  for (const [name, sentence] of Object.entries(kinds)) {
    const path = join(data, name);
    if (existsSync(path)) renameSync(path, `${path}.away`);
    if (name === 'run') writeFileSync(path, '');
    else mkdirSync(path);
    await isRefused(`${path} ${sentence}`);
    rmSync(path, { recursive: true });
    if (existsSync(`${path}.away`)) renameSync(`${path}.away`, path);
  }

  // A key of the gateway of another type.
  const key = join(data, 'keys/gateway_client_ed25519');
  renameSync(key, `${key}.away`);
  execFileSync('ssh-keygen', ['-q', '-t', 'rsa', '-N', '', '-f', key]);
  await isRefused(`The key in ${key} cannot be used: it holds no Ed25519`);
  renameSync(`${key}.away`, key);

  // A copy of the trail over the configuration.
  write({ audit: { file: './andromeda.yaml' } });
  await isRefused('audit.file is ');

  // A lock that a disk left with other content is used.
  write();
  writeFileSync(join(data, 'lock'), 'rubbish'.repeat(20));
  assert.equal((await check()).status, 0);
  await starts();

  // Directories that are not there for backups and for a copy of the trail.
  write({ backup: { to: './none' }, audit: { file: './none/audit.jsonl' } });
  const { status, out } = await check();
  assert.deepEqual([status, [...out.matchAll(/^warn {3}(audit|backup) /gm)].length], [0, 2], out);
  await starts();
});

test('what fails behind the start is a line of the log, and ends the service and its gateway', async () => {
  using directory = temporaryDirectory();
  const { file, gateway } = await writeSettings(directory.path);
  const script = `
    import { serve } from '${join(import.meta.dirname, '../../src/service/host/serve.ts')}';
    const stopping = new Promise(() => {});
    const next = async () => { throw new Error('no luck'); };
    process.exitCode = await serve({ config: ${JSON.stringify(file)} }, { next, reload() {}, stopping });
  `;
  const args = ['--input-type=module', '--eval', script];
  const timeout = limit(60_000);
  const ran = spawnSync(process.execPath, args, { encoding: 'utf8', timeout });
  assert.equal(ran.status, 1, ran.stderr);
  const lines = ran.stderr
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const failed = lines.find(({ event }) => event === 'serve.failed');
  assert.equal(failed?.message, 'no luck');
  assert.ok(lines.some(({ event }) => event === 'serve.ready'));
  const socket = connect(gateway, '127.0.0.1');
  const [error] = await once(socket, 'error');
  assert.equal(error.code, 'ECONNREFUSED');
});
