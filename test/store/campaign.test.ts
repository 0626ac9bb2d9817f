/** The smoke test of `npm run campaign`: a power cut ends the process as kill -9 does, and loses what was not flushed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { whyNoDisk } from '../../scripts/campaign/disk.ts';
import { campaign, clean } from './campaign.ts';

const disk = whyNoDisk();
const skip = disk ? `not here: ${disk}` : false;

test('after a power cut all that was answered or shown is there, and no command by half', {
  skip,
}, async () => {
  assert.match(await campaign('--kind', 'power', '--rounds', '1'), clean);
});
