/**
 * Someone who reads while others write, on a disk whose flushes take 50 ms longer (scripts/campaign/flush.c), against the
 * same on the disk as it is: nobody should wait for a flush who writes nothing.
 */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { startTestIssuer } from '../../test/support/issuer.ts';
import { badFlush } from '../campaign/bad-flush.ts';
import type { LoadResult } from './load.ts';
import type { ProbeOrder, ProbeResult } from './probe.ts';
import { program } from './program.ts';
import type { Scratch } from './scratch.ts';
import { configureService, startService } from './service.ts';
import type { Report } from './table.ts';
import type { WriteOrder } from './write-load.ts';

const flushMs = 50;
const seconds = 6;
const connections = 8;
const everyMs = 5;
/** Far less than a flush. */
const aimMs = 5;

interface Run {
  written: LoadResult;
  waits: ProbeResult[string];
}

export async function benchSlowDisk(scratch: Scratch): Promise<Report> {
  const usual = await run(scratch, {});
  const slow = await run(scratch, badFlush(scratch.folder('flush'), String(flushMs)));
  const p99 = ({ waits }: Run) => `${waits.p99Ms.toFixed(1)} ms`;
  const writes = ({ written }: Run) =>
    `${written.perSecond.toFixed(0)}/s, ${written.medianMs.toFixed(1)} ms each`;
  return {
    rows: [
      {
        row: `GET /me beside writes, flushes of ${flushMs} ms, p99`,
        ours: p99(slow),
        reference: `${p99(usual)}  this disk`,
        ratio: slow.waits.p99Ms / usual.waits.p99Ms,
        aim: `≤ ${aimMs} ms`,
        met: slow.waits.p99Ms <= aimMs,
      },
    ],
    notes: [
      `slow-disk: ${connections} connections write ${writes(slow)}, and on this disk ${writes(usual)}.`,
      `slow-disk: GET /me takes ${slow.waits.p50Ms.toFixed(2)} ms beside them (p50) and ${slow.waits.worstMs.toFixed(1)} ms at worst, and on this disk ${usual.waits.p50Ms.toFixed(2)} and ${usual.waits.worstMs.toFixed(1)}.`,
    ],
  };
}

async function run(scratch: Scratch, env: Record<string, string>): Promise<Run> {
  await using issuer = await startTestIssuer(Date.now);
  const dir = scratch.folder('slow-disk');
  const members = [{ email: 'ada@physics.example', role: 'owner', username: 'ada' }];
  const lab = { organizations: [{ slug: 'physics', name: 'Physics', members }] };
  const service = await configureService(dir, { lab, issuer: issuer.url });
  const server = await startService(scratch, service, { env: { ...process.env, ...env } });
  const authorization = `Bearer ${await issuer.token('ada', {}, 3600)}`;
  const peopleFile = join(dir, 'people.json');
  writeFileSync(peopleFile, JSON.stringify([authorization]));

  const port = service.ports.business;
  const request = `GET /me HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${authorization}\r\n\r\n`;
  const order: ProbeOrder = { targets: { me: { port, request } }, everyMs };
  const load: WriteOrder = { port, peopleFile, connections, seconds };
  const write = async () => JSON.parse(await scratch.run(program('write-load.ts', load))) as LoadResult;
  await write();
  const probe = scratch.start(program('probe.ts', order));
  const output = probe.stdout ? text(probe.stdout) : '';
  const written = await write();
  probe.kill('SIGTERM');
  await once(probe, 'close');
  const waits = (JSON.parse((await output).replace(/^asking\n/, '')) as ProbeResult)['me'];
  await scratch.end(server);
  if (!waits) throw new Error('nobody was asked');
  return { written, waits };
}
