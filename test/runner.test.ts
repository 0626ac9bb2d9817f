/** `scripts/test`: what it says of jobs that hang, or leave something behind. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryDirectory } from './support/directory.ts';
import { limit } from './support/limit.ts';
import { freePorts } from './support/ports.ts';

const runner = join(import.meta.dirname, '../scripts/test/main.ts');

/** Runs one test file of this body. */
function run(body: string, ...options: string[]) {
  using directory = temporaryDirectory();
  const file = join(directory.path, 'some.test.mjs');
  const record = join(directory.path, 'record');
  const imports = `import { spawn } from 'node:child_process'; import { mkdtempSync, writeFileSync } from 'node:fs';
    import { tmpdir } from 'node:os'; import { test } from 'node:test';`;
  writeFileSync(
    file,
    `${imports}\nconst record = (text) => writeFileSync('${record}', String(text));\n${body}`,
  );
  const { status, stdout } = spawnSync(process.execPath, [runner, ...options, file], {
    encoding: 'utf8',
    timeout: limit(60_000),
  });
  return { file, status, stdout, record: existsSync(record) ? readFileSync(record, 'utf8') : '' };
}

test('a file whose tests pass is one line, and its tests are counted', () => {
  const { status, stdout, file } = run("test('one', () => {}); test.skip('two', () => {});");
  assert.equal(status, 0, stdout);
  assert.match(
    stdout,
    new RegExp(`^✔ ${file} \\(2 tests, [\\d.]+ s(, CPU [\\d.]+ s)?\\)\n﹣ two .*\nℹ tests 2\nℹ pass 1\n`),
  );
  assert.match(stdout, /^ℹ skipped 1$/m);
});

test('a file with a test that fails shows its whole output', () => {
  const { status, stdout, file } = run("test('one', () => { throw new Error('no good'); });");
  assert.equal(status, 1);
  assert.match(stdout, /Error: no good/);
  assert.match(stdout, new RegExp(`✖ failed: ${file}`));
});

test('a file that hangs is ended in time, and named', () => {
  const { status, stdout, file } = run("test('one', () => { for (;;); });", '--limit', '2');
  assert.equal(status, 1);
  assert.match(stdout, new RegExp(`${file} did not end within 2 s and was ended`));
});

test('a process that a file leaves running is ended and named, and a file that it leaves is removed and named', () => {
  const { status, stdout, file, record } = run(`test('one', () => {
    const child = spawn('sleep', ['123'], { detached: true, stdio: 'inherit' });
    child.unref();
    writeFileSync(mkdtempSync(tmpdir() + '/left-') + '/file', '');
    record(child.pid + ' ' + tmpdir());
  });`);
  const [pid = '', directory = ''] = record.split(' ');
  assert.equal(status, 1, stdout);
  assert.match(
    stdout,
    new RegExp(`${file} left behind: the process ${pid} \\(sleep 123\\); the file left-\\w+ in TMPDIR`),
  );
  assert.equal(existsSync(directory), false);
  // Whoever adopted it may not have waited for it yet.
  const command = `/proc/${pid}/cmdline`;
  assert.equal(existsSync(command) ? readFileSync(command, 'utf8') : '', '');
});

test('no port is given to two that ask at once', async () => {
  const ports = (await Promise.all([freePorts(1), freePorts(3), freePorts(1), freePorts(2)])).flat();
  assert.equal(new Set(ports).size, 7);
});
