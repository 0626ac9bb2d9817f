/** Completion, as the shells themselves see it where they are installed. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createMachine } from '../harness.ts';

const isThere = (shell: string) => spawnSync(shell, ['-c', ':']).status === 0;
const without = (shell: string) => !isThere(shell) && `${shell} is not installed`;

async function script(t: TestContext, shell: string): Promise<{ text: string; file: string }> {
  const { run, directory } = await createMachine(t);
  const { status, stdout, stderr } = await run(['completion', shell]);
  assert.deepEqual([status, stderr], [0, '']);
  const file = join(directory, '..', `completion.${shell}`);
  await writeFile(file, stdout);
  return { text: stdout, file };
}

/** What is offered for a line whose last word is being typed. */
const rows: [string, string[]][] = [
  ['slurm-config ', ['get', 'set', 'edit', 'restore', 'check', 'status', 'history']],
  ['keys re', ['rename', 'revoke']],
  ['admin cluster ', ['list', 'add', 'check', 'release']],
  ['admin cluster add --scheduler ', ['sunk', 'kubernetes']],
  ['storage -o ', ['table', 'json', 'yaml']],
  ['storage --o', ['--org', '--output']],
  ['ssh-', ['ssh-config']],
  ['shell set ', []],
  ['keys add --reason ', []],
];

test('bash completes commands, flags and the values of flags', { skip: without('bash') }, async (t) => {
  const { file } = await script(t, 'bash');
  const ask = (line: string) => {
    const program = `source "$1"; read -ra COMP_WORDS <<< "andromeda $2"; [[ $2 != *' ' ]] || COMP_WORDS+=('')
COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _andromeda; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const out = execFileSync('bash', ['-c', program, 'bash', file, line], { encoding: 'utf8' });
    return out.split('\n').filter(Boolean);
  };
  for (const [line, offered] of rows) assert.deepEqual(ask(line), offered, line);
});

test('fish completes commands, flags and the values of flags', { skip: without('fish') }, async (t) => {
  const { file } = await script(t, 'fish');
  for (const [line, offered] of rows.filter(([, some]) => some.length > 0)) {
    const program = `source ${file}; complete -C 'andromeda ${line}'`;
    const out = execFileSync('fish', ['-c', program], { encoding: 'utf8' });
    const words = out.split('\n').map((one) => one.split('\t')[0]);
    for (const word of offered) assert.ok(words.includes(word), `${line}: ${out}`);
  }
});

test('the IDs of jobs are asked for, and nothing else of the answer reaches the shell', async (t) => {
  const { directory } = await createMachine(t);
  const jobs = ['4711', '4712_3', '$(touch hit)', '4713+1'].map((id) => ({ cluster: 'alpha', id }));
  const answer = JSON.stringify({ jobs: jobs.map((job) => ({ ...job, name: '"id": "666",' })) }, null, 2);
  const bin = await mkdtemp(join(directory, '..', 'bin-'));
  await writeFile(join(bin, 'answer'), answer);
  await writeFile(join(bin, 'andromeda'), `#!/bin/sh\ncat ${bin}/answer\n`, { mode: 0o755 });
  const env = { ...process.env, PATH: `${bin}:${process.env['PATH']}` };
  const known = ['4711', '4712_3', '4713+1'];
  for (const line of ['ssh alpha --job 47', 'code alpha --job 47']) {
    if (isThere('bash')) {
      const { file } = await script(t, 'bash');
      const program = `source "$1"; read -ra COMP_WORDS <<< "andromeda $2"
COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _andromeda; printf '%s\\n' "\${COMPREPLY[@]}"`;
      const out = execFileSync('bash', ['-c', program, 'bash', file, line], {
        encoding: 'utf8',
        env,
        cwd: bin,
      });
      assert.deepEqual(out.split('\n').filter(Boolean), known);
    }
    if (isThere('fish')) {
      const { file } = await script(t, 'fish');
      const program = `source ${file}; complete -C 'andromeda ${line}'`;
      const out = execFileSync('fish', ['-c', program], { encoding: 'utf8', env, cwd: bin });
      assert.deepEqual(
        out
          .split('\n')
          .filter(Boolean)
          .map((one) => one.split('\t')[0]),
        known,
      );
    }
  }
  assert.equal(existsSync(join(bin, 'hit')), false);
});

test('zsh takes its script', { skip: without('zsh') }, async (t) => {
  const { file } = await script(t, 'zsh');
  execFileSync('zsh', ['-n', file]);
});

test('every shell is given every command, with what it is for where the shell shows that', async (t) => {
  const paths = [
    '/ssh',
    '/keys/list',
    '/wait/permission',
    '/admin/audit/verify',
    '/service/install',
    '/completion',
  ];
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { text } = await script(t, shell);
    for (const path of paths) assert.ok(text.includes(path), `${shell} lacks ${path}`);
    if (shell !== 'bash') assert.ok(text.includes("your SSH keys, revoked ones too'"), shell);
  }
});
