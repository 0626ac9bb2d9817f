/** Short runs of `npm run campaign` of the other kinds. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { whyNoBadFlush } from '../../scripts/campaign/bad-flush.ts';
import { whyNoDisk } from '../../scripts/campaign/disk.ts';
import { campaign, clean } from './campaign.ts';

const bad = whyNoDisk() ?? whyNoBadFlush();
const skip = bad ? `not here: ${bad}` : false;

test('after kill -9 all that was answered or shown is there, and no command by half', async () => {
  assert.match(await campaign('--kind', 'kill', '--rounds', '3'), clean);
});

test('a disk whose flushes do nothing is found out, as a forgotten flush would be', { skip }, async () => {
  const output = await campaign('--kind', 'power', '--rounds', '5', '--flush', 'none');
  assert.match(output, /writes answered, [1-9]\d* faults\./);
});
