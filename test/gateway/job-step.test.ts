/** The step that lets a person into a job, without Slurm: its end. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { stepScript } from '../../src/gateway/ssh/job/enter-script.ts';
import { eventually } from '../support/app.ts';

/** The directory of the step that this process runs. */
function directoryOf(pid: number | undefined): string {
  const all = readdirSync('/tmp').filter((name) => name.startsWith('andromeda-job.'));
  const own = all.find((name) => {
    const file = `/tmp/${name}/pid`;
    return existsSync(file) && readFileSync(file, 'utf8') === `${pid}\n`;
  });
  return own ? `/tmp/${own}` : '';
}

test('a step that is signalled again while it ends leaves no process', async () => {
  const step = spawn('sh', ['-c', stepScript], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
  const left = await eventually(async () => directoryOf(step.pid), Boolean);
  const env = { ...process.env, ANDROMEDA_JOB_LOGIN: left };
  const stays = spawn('sh', ['-c', 'trap "" TERM; while :; do sleep 1; done'], { env, detached: true });
  const [ended, gone] = [once(step, 'exit'), once(stays, 'exit')];
  let hasEnded = false;
  ended.then(() => {
    hasEnded = true;
  });
  for (; !hasEnded; await sleep(5)) process.kill(-(step.pid ?? 0), 'SIGTERM');
  assert.deepEqual((await gone)[1], 'SIGKILL');
  assert.equal(existsSync(left), false);
});
