/** Short runs of `npm run campaign`. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { whyNoBadFlush } from '../../scripts/campaign/bad-flush.ts';
import { whyNoDisk } from '../../scripts/campaign/disk.ts';

const main = fileURLToPath(new URL('../../scripts/campaign/main.ts', import.meta.url));

async function campaign(...args: string[]): Promise<string> {
  const child = spawn(process.execPath, [main, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  return text(child.stdout);
}

const disk = whyNoDisk();
const bad = disk ?? whyNoBadFlush();
const skipFor = (reason: string | undefined) => ({ skip: reason ? `not here: ${reason}` : false });

const clean = /: 3 rounds, [1-9]\d* writes answered, 0 faults\./;

test('after kill -9 all that was answered or shown is there, and no command by half', async () => {
  assert.match(await campaign('--kind', 'kill', '--rounds', '3'), clean);
});

test(
  'after a power cut all that was answered or shown is there, and no command by half',
  skipFor(disk),
  async () => {
    assert.match(await campaign('--kind', 'power', '--rounds', '3'), clean);
  },
);

test(
  'a disk whose flushes do nothing is found out, as a forgotten flush would be',
  skipFor(bad),
  async () => {
    const output = await campaign('--kind', 'power', '--rounds', '5', '--flush', 'none');
    assert.match(output, /writes answered, [1-9]\d* faults\./);
  },
);
