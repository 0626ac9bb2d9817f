/** The log: lines that a machine can read, and events that the types know. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createLogger, type LogLevel } from '../../src/lib/log.ts';
import { createStderrWriter } from '../../src/lib/log-writer.ts';

function linesOf(level: LogLevel, body: (log: ReturnType<typeof createLogger>) => void) {
  const lines: string[] = [];
  body(createLogger(level, (line) => lines.push(line)));
  return lines.map((line) => JSON.parse(line));
}

test('an event is one JSON line with its time, its level, its name and its fields', () => {
  const [line, ...more] = linesOf('info', (log) => {
    log.debug('sync.released', { cluster: 'left out', side: 'slurm' });
    log.info('sync.released', { cluster: 'alpha\n"beta"', side: 'slurm' });
  });
  assert.deepEqual(more, []);
  assert.ok(Math.abs(Date.parse(line.time) - Date.now()) < 60_000);
  assert.deepEqual(line, {
    level: 'info',
    time: line.time,
    event: 'sync.released',
    cluster: 'alpha\n"beta"',
    side: 'slurm',
  });
});

test('what a stranger sends cannot drive the terminal that shows the log, and every event is one line', () => {
  const lines: string[] = [];
  const username = '\u001b[2J\u009b2J\u202eada\u2066\u200b\u2028\n\u007f';
  createLogger('debug', (line) => lines.push(line)).debug('login_node_session_opened', { username });
  const [line = ''] = lines;
  assert.doesNotMatch(line.slice(0, -1), /[\p{Cc}\p{Cf}\p{Zl}]/u);
  assert.equal(JSON.parse(line).username, username);
});

test('however long the texts of an event are, its line is short', () => {
  const lines: string[] = [];
  const log = createLogger('debug', (line) => lines.push(line));
  const long = '\u{1f600}'.repeat(100_000);
  const login = { id: '1', remoteAddress: '192.0.2.1', loginName: long, detail: `x${long}` };
  log.info('gateway.login.refused', {
    ...login,
    reason: 'unknown',
    cause: new Error(long, { cause: new Error(long) }),
  });
  const [line = ''] = lines;
  assert.ok(line.length < 20_000, `${line.length} characters`);
  assert.ok(JSON.parse(line).loginName.startsWith('\u{1f600}'));
});

test('an error is shown with its stack and what caused it', () => {
  const error = new TypeError('no list', { cause: new Error('the host is away') });
  const [line] = linesOf('error', (log) => log.error('sync.sweep.failed', { error }));
  assert.deepEqual(
    [line.error.name, line.error.message, line.error.cause.message],
    ['TypeError', 'no list', 'the host is away'],
  );
  assert.match(line.error.stack, /log\.test\.ts/);
});

test('nothing that is thrown makes the log throw', () => {
  const circle: { itself?: object } = {};
  circle.itself = circle;
  const own = new Error('it is its own cause');
  own.cause = own;
  const throwing = {
    toJSON() {
      throw new Error('not this one');
    },
  };
  const thrown = [
    circle,
    10n,
    Symbol('s'),
    null,
    undefined,
    () => 1,
    new Error('x', { cause: circle }),
    own,
    throwing,
  ];
  const lines = linesOf('error', (log) => {
    for (const error of thrown) log.error('sync.sweep.failed', { error });
  });
  assert.equal(lines.length, thrown.length);
});

test('every event that the log knows happens somewhere', () => {
  const src = join(import.meta.dirname, '../../src');
  const files = readdirSync(src, { recursive: true, encoding: 'utf8' });
  const texts = files
    .filter((file) => file.endsWith('.ts'))
    .map((file) => readFileSync(join(src, file), 'utf8'));
  const declared = readFileSync(join(src, 'lib/log.ts'), 'utf8')
    .split('export interface LogEvents')[1]
    ?.split('\n}')[0];
  const names = [...(declared ?? '').matchAll(/^ {2}'?([\w.]+)'?: /gm)].map(([, name]) => name ?? '');
  assert.ok(names.length > 40);
  const isList = (text: string) => /export (interface LogEvents|const errorEvents)\b/.test(text);
  const code = texts.filter((text) => !isList(text)).join('\n');
  const unused = names.filter((name) => !code.includes(`'${name}'`));
  // `inBackground` in the loop makes their names.
  assert.deepEqual(unused, ['sync.notice.failed', 'sync.sweep.failed']);
});

test('in systemd’s journal each line begins with its priority, and nowhere else', () => {
  const script = `
    import { createLogger } from '${join(import.meta.dirname, '../../src/lib/log.ts')}';
    import { fstatSync } from 'node:fs';
    const { dev, ino } = fstatSync(2);
    if (process.argv[1] === 'journal') process.env.JOURNAL_STREAM = dev + ':' + ino;
    const log = createLogger('debug');
    log.debug('store.written', { ms: 1 });
    log.info('gateway.stopped', {});
    log.warn('process.warning', { name: 'n', message: 'm' });
    log.error('serve.left', { message: 'm' });`;
  const beginnings = (...args: string[]) =>
    spawnSync(process.execPath, ['--input-type=module', '-e', script, ...args], { encoding: 'utf8' })
      .stderr.trimEnd()
      .split('\n')
      .map((line) => line.slice(0, line.indexOf(',')));
  assert.deepEqual(beginnings('journal'), [
    '<7>{"level":"debug"',
    '<6>{"level":"info"',
    '<4>{"level":"warn"',
    '<3>{"level":"error"',
  ]);
  assert.equal(beginnings('no')[3], '{"level":"error"');
});

test('a log that is not read takes no more than its bound, and says how many lines are missing', () => {
  const waiting: string[] = [];
  const stream = {
    writableLength: 0,
    write(text: string) {
      waiting.push(text);
      this.writableLength += text.length;
    },
  };
  const write = createStderrWriter(undefined, stream);
  const line = `{"level":"info","message":"${'x'.repeat(100_000)}"}\n`;
  for (let count = 0; count < 200; count += 1) write(line);
  const kept = waiting.length;
  assert.ok(stream.writableLength < 10 * 1024 * 1024, `${stream.writableLength} characters wait`);
  waiting.splice(0);
  stream.writableLength = 0;
  write(line);
  const [missing = '', next] = waiting;
  const { level, event, lines } = JSON.parse(missing);
  assert.deepEqual([level, event, lines, next], ['warn', 'log.lost', 200 - kept, line]);
});
