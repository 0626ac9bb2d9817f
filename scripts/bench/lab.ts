/** What people notice while an operator applies a lab file of 5,000: the echo of an open session, and the API. */
import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startTestIssuer } from '../../test/support/issuer.ts';
import { type Client, createClient, organizationOf, registerKey } from './client.ts';
import { echoOnce, openTerminal } from './echo.ts';
import { percentile } from './percentile.ts';
import type { Scratch } from './scratch.ts';
import { configureService, startService } from './service.ts';
import { whyNoSsh } from './ssh-lab.ts';
import type { Report, Row } from './table.ts';

const people = 5_000;
const aloneMs = 5_000;
const pauseMs = 3;
/** What people do not notice, and a part of the work may take at most. */
const aimMs = 20;
const alpha = '7b6f1f0e-3c39-4a8e-9a55-0d1c2b3a4f50';
const olga = { email: 'olga@physics.example', role: 'owner', username: 'olga' };
const lab = (members: object[]) => ({
  users: [{ email: olga.email, staff: ['staff.operate'] }],
  organizations: [{ slug: 'physics', name: 'Physics', members: [olga, ...members] }],
  clusters: [
    {
      name: 'alpha',
      id: alpha,
      organization: 'physics',
      scheduler: 'sunk',
      simulated: { computeNodes: 1, gpusPerNode: 1 },
    },
  ],
});

/** Readings in ms. */
interface Waits {
  echo: number[];
  me: number[];
}

export async function benchLab(scratch: Scratch): Promise<Report> {
  const reason = await whyNoSsh(scratch);
  if (reason) return { rows: [], notes: [`lab is left out: ${reason}.`] };
  await using issuer = await startTestIssuer(Date.now);
  const service = await configureService(scratch.folder('lab'), { lab: lab([]), issuer: issuer.url });
  await startService(scratch, service);
  const authorization = `Bearer ${await issuer.token('olga', {}, 3600)}`;
  const business = createClient(service.ports.business, authorization);
  const platform = createClient(service.ports.platform, authorization);

  const keyFile = join(scratch.folder('lab-key'), 'key');
  await scratch.run(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-C', '', '-f', keyFile]);
  await registerKey(business, readFileSync(`${keyFile}.pub`, 'utf8').trim());
  const { hostKey } = await untilReady(platform, await organizationOf(business, 'olga'));
  writeFileSync(`${keyFile}.known`, `[127.0.0.1]:${service.ports.gateway} ${hostKey}\n`);
  const options = ['IdentitiesOnly=yes', 'BatchMode=yes', `UserKnownHostsFile=${keyFile}.known`];
  const terminal = await openTerminal(scratch, [
    ...['-F', 'none', '-tt', '-i', keyFile, '-p', `${service.ports.gateway}`, '-l', `${alpha}.olga`],
    ...options.flatMap((option) => ['-o', option]),
    '127.0.0.1',
  ]);
  const during = async (work: Promise<unknown>): Promise<Waits> => {
    let going = true;
    const repeat = async (once: () => Promise<number>) => {
      const times: number[] = [];
      while (going) {
        times.push(await once());
        await sleep(pauseMs);
      }
      return times;
    };
    const readings = Promise.all([
      repeat(() => echoOnce(terminal)),
      repeat(() => timed(async () => void (await (await business.fetch('/me')).arrayBuffer()))),
    ]);
    await work.finally(() => {
      going = false;
    });
    const [echo, me] = await readings;
    return { echo, me };
  };
  const alone = await during(sleep(aloneMs));
  const beside = await during(apply(business));
  return {
    rows: [
      row('echo beside a lab of 5,000, the worst', beside.echo, alone.echo, 1, aimMs),
      row('  the median', beside.echo, alone.echo, 0.5),
      row('GET /me beside it, the worst', beside.me, alone.me, 1),
      row('  the median', beside.me, alone.me, 0.5),
    ],
    notes: [],
  };
}

function row(what: string, ours: number[], alone: number[], share: number, aim?: number): Row {
  const [mine, reference] = [percentile(ours, share), percentile(alone, share)];
  const goal = aim === undefined ? { aim: '' } : { aim: `< ${aim} ms`, met: mine < aim };
  return {
    row: what,
    ours: `${mine.toFixed(1)} ms`,
    reference: `${reference.toFixed(1)} ms  alone`,
    ratio: mine / reference,
    ...goal,
  };
}

async function timed(work: () => Promise<void>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

async function apply(business: Client): Promise<void> {
  const members = Array.from({ length: people }, (_, index) => ({
    email: `member-${index}@physics.example`,
    role: 'member',
    username: `member-${index}`,
    permissions: ['clusters.read', 'clusters.ssh'],
  }));
  const headers = {
    'content-type': 'application/json',
    'idempotency-key': randomUUID(),
    'audit-reason': 'bench',
  };
  const body = JSON.stringify({ lab: lab(members) });
  await (await business.fetch('/operator/lab', { method: 'POST', headers, body })).arrayBuffer();
  // What follows from it belongs to it.
  await sleep(aloneMs);
}

async function untilReady(platform: Client, organizationId: string): Promise<{ hostKey: string }> {
  const deadline = performance.now() + 30_000;
  for (;;) {
    const response = await platform.fetch(`/clusters/${alpha}/ssh-access?organizationId=${organizationId}`);
    const { ready, reason, host_key } = (await response.json()) as Record<string, unknown>;
    if (ready === true) return { hostKey: String(host_key) };
    if (performance.now() > deadline) throw new Error(`the cluster does not become ready: ${reason}`);
    await sleep(100);
  }
}
