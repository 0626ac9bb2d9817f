/** The command lines that reach a login node, run by the shells that an account may have. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { commandLine, loginShellLine } from '../../src/gateway/ssh/relay/exec-line.ts';

const shells = [
  '/bin/sh',
  '/bin/bash',
  '/bin/dash',
  '/usr/bin/zsh',
  '/usr/bin/fish',
  '/bin/tcsh',
  '/usr/bin/ksh',
].filter((path) => existsSync(path));

/** As sshd does it: the account's shell interprets the line. */
function run(accountShell: string, line: string, input = '') {
  const ran = spawnSync(accountShell, ['-c', Buffer.from(line, 'latin1').toString('utf8')], { input });
  return { status: ran.status, signal: ran.signal, out: ran.stdout.toString(), err: ran.stderr.toString() };
}

const commands: [what: string, command: string, out: string][] = [
  ['a plain command', 'echo hello', 'hello\n'],
  ['quotes', `echo 'single "double"' "it's"`, `single "double" it's\n`],
  ['a backslash', String.raw`printf '%s\n' 'a\b\\c'`, 'a\\b\\\\c\n'],
  ['variables', 'x=1; echo "$x$x" \'$x\'', '11 $x\n'],
  ['an exclamation mark', 'echo hi!there "!!"', 'hi!there !!\n'],
  ['several lines', 'echo one\necho two\n', 'one\ntwo\n'],
  ['a here-document', 'cat <<EOF\nbody $((1+1))\nEOF', 'body 2\n'],
  ['octal that is not ours', String.raw`printf '%s' '\0101 \012'`, '\\0101 \\012'],
  ['an empty command', '', ''],
  ['more than ASCII', 'echo ångström', 'ångström\n'],
  ['an option-like command', '-n', ''],
];

for (const account of shells)
  for (const [what, command, out] of commands)
    test(`${what} comes through an account whose shell is ${account}`, () => {
      const ran = run(account, commandLine('/bin/sh', Buffer.from(command).toString('latin1')));
      assert.equal(ran.out, out);
    });

for (const account of shells)
  test(`a command that is not UTF-8 keeps its bytes through an account whose shell is ${account}`, () => {
    const line = commandLine('/bin/sh', `printf '%s' '\xff\xfe caf\xe9 \x80!'`);
    assert.match(line, /^[\x20-\x7e]+$/);
    const ran = spawnSync(account, ['-c', line]);
    assert.equal(ran.stdout.toString('latin1'), '\xff\xfe caf\xe9 \x80!');
  });

test('the exit status returned is the command’s', () => {
  assert.equal(run('/bin/sh', commandLine('/bin/bash', 'exit 7')).status, 7);
});

test('a signal that ends the command is seen as such', () => {
  assert.equal(run('/bin/sh', commandLine('/bin/bash', 'kill -TERM $$')).signal, 'SIGTERM');
});

test('the gateway runs the session with the user’s login shell', () => {
  const ran = run('/bin/sh', loginShellLine('/bin/bash'), 'shopt login_shell; echo $SHELL; exit 4\n');
  assert.equal(ran.status, 4);
  assert.match(ran.out, /login_shell\s+on\n\/bin\/bash\n/);
  assert.equal(ran.err, '');
});

for (const missing of ['/no/such/shell', '/etc/passwd', '/tmp', `/no/it's "$HOME" \\ here!`]) {
  test(`a missing or non-executable shell (${missing}): a warning on one line, and /bin/bash`, () => {
    const ran = run('/bin/sh', commandLine(missing, 'echo $0 $SHELL'));
    assert.equal(ran.out, '/bin/bash /bin/bash\n');
    assert.equal(
      ran.err,
      `andromeda: your login shell ${missing} is missing or not executable here, using /bin/bash\n`,
    );
    assert.equal(run('/bin/sh', loginShellLine(missing), 'exit 3\n').status, 3);
  });
}

test('when /bin/bash is missing as well the session fails', () => {
  const line = loginShellLine('/no/such/shell').replaceAll('/bin/bash', '/no/bash');
  const ran = run('/bin/sh', line);
  assert.equal(ran.status, 127);
  assert.equal(ran.err, 'andromeda: neither your login shell /no/such/shell nor /no/bash can be run here\n');
});

test('a line holds nothing that csh or fish read differently within single quotes', () => {
  const line = commandLine('/bin/a\\!', 'a\\b!c\nd\\\\e\r');
  assert.doesNotMatch(line, /[!\n\r]/);
  assert.doesNotMatch(line.replaceAll(`'\\''`, ''), /\\[\\']/);
});
