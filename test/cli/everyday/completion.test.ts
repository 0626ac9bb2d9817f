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
  ['slurm-config ', ['get', 'set', 'restore', 'check', 'status', 'history']],
  ['keys re', ['rename', 'revoke']],
  ['admin cluster ', ['list', 'add', 'check', 'survey', 'release']],
  ['admin cluster add --scheduler ', ['slurm', 'sunk', 'kubernetes']],
  ['storage -o ', ['table', 'json', 'yaml']],
  ['storage --o', ['--org', '--output']],
  ['ssh-', ['ssh-config']],
  ['shell set ', []],
  ['keys add --reason ', []],
];

/** What a shell offers for a line. */
const asks: Record<string, (file: string, line: string, env?: NodeJS.ProcessEnv) => string[]> = {
  bash(file, line, env) {
    const program = `source "$1"; read -ra COMP_WORDS <<< "andromeda $2"; [[ $2 != *' ' ]] || COMP_WORDS+=('')
COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _andromeda; printf '%s\\n' "\${COMPREPLY[@]}"`;
    return linesOf('bash', ['-c', program, 'bash', file, line], env);
  },
  fish(file, line, env) {
    const program = `source ${file}; complete -C 'andromeda ${line}'`;
    return linesOf('fish', ['-c', program], env).map((one) => one.split('\t')[0] ?? '');
  },
};

function linesOf(shell: string, args: string[], env?: NodeJS.ProcessEnv): string[] {
  return execFileSync(shell, args, { encoding: 'utf8', env }).split('\n').filter(Boolean);
}

for (const [shell, ask] of Object.entries(asks)) {
  test(`${shell} completes commands, flags and the values of flags`, { skip: without(shell) }, async (t) => {
    const { file } = await script(t, shell);
    for (const [line, offered] of rows) {
      const found = ask(file, line);
      if (shell === 'bash') assert.deepEqual(found, offered, line);
      for (const word of offered) assert.ok(found.includes(word), `${line}: ${found}`);
    }
  });

  test(`${shell} asks for the IDs of jobs, and nothing else of the answer reaches it`, {
    skip: without(shell),
  }, async (t) => {
    const { file } = await script(t, shell);
    const jobs = ['4711', '4712_3', '$(touch $HIT)', '4713+1'].map((id) => ({ cluster: 'alpha', id }));
    const answer = JSON.stringify({ jobs: jobs.map((job) => ({ ...job, name: '"id": "666",' })) }, null, 2);
    const bin = await mkdtemp(join(file, '..', 'bin-'));
    await writeFile(join(bin, 'answer'), answer);
    await writeFile(join(bin, 'andromeda'), `#!/bin/sh\ncat ${bin}/answer\n`, { mode: 0o755 });
    const env = { ...process.env, PATH: `${bin}:${process.env['PATH']}`, HIT: join(bin, 'hit') };
    for (const line of ['ssh alpha --job 47', 'code alpha --job 47'])
      assert.deepEqual(ask(file, line, env), ['4711', '4712_3', '4713+1']);
    assert.equal(existsSync(join(bin, 'hit')), false);
  });
}

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
