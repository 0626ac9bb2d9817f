/**
 * A short run of `npm run campaign -- cluster`: three servers behind HAProxy on PostgreSQL with a standby, of which a server
 * and then the primary are killed under load. How long anything takes is for the campaign on a quiet machine.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { whyNoLab } from '../../scripts/campaign/cluster/lab.ts';

const main = fileURLToPath(new URL('../../scripts/campaign/main.ts', import.meta.url));
const reason = whyNoLab();

test('servers and the primary are killed, and nothing that was answered is lost', {
  skip: reason ? `not here: ${reason}` : false,
}, async (t) => {
  const args = [main, 'cluster', '--short', '--slack', '20'];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'], signal: t.signal });
  const ended = new Promise((done) => child.once('close', done));
  const output = await text(child.stdout);
  assert.equal(await ended, 0, output);
  assert.match(output, /of [1-9]\d* acknowledged writes lost, or the trail broken +0 /, output);
});
