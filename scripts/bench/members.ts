/**
 * The members of an organization of thousands, as the console's page reads them: all in one answer. Asked after a write that
 * concerns no member, and after one that does, against a bare server with the same bytes; and what it keeps others waiting.
 */
import { randomUUID } from 'node:crypto';
import { startTestIssuer } from '../../test/support/issuer.ts';
import { startBare } from './bare.ts';
import { type Client, createClient, organizationOf, registerKey } from './client.ts';
import type { ProbeOrder, ProbeResult } from './probe.ts';
import { nextLine, program } from './program.ts';
import { alternate, median, medianRatio } from './rounds.ts';
import type { Scratch } from './scratch.ts';
import { configureService, startService } from './service.ts';
import type { Report, Row } from './table.ts';
import { cpuSeconds } from './usage.ts';

const count = 5_000;
const rounds = 6;
/** V8 compiles what is hot. */
const warming = 2;
/** The kernel counts processor time in hundredths of a second. */
const readsOfRound = 8;
const askEveryMs = 3;
const startPatienceMs = 120_000;
const aims = { cpu: 4, waitMs: 20 };
const reference = 'bare node:http';

export async function benchMembers(scratch: Scratch): Promise<Report> {
  await using issuer = await startTestIssuer(Date.now);
  const service = await configureService(scratch.folder('members'), { lab, issuer: issuer.url });
  const server = await startService(scratch, service, { patience: startPatienceMs });
  const authorization = `Bearer ${await issuer.token('member-1', {}, 3600)}`;
  const client = createClient(service.ports.business, authorization);
  const organization = await organizationOf(client, 'member-1');
  const path = `/organizations/${organization}/members`;
  const bare = await startBare(scratch, client, path);
  const bareClient = createClient(bare.port, authorization);
  const read = async (from: Client) => void (await (await from.fetch(path)).arrayBuffer());
  const { members } = (await (await client.fetch(path)).json()) as { members: { user_id: string }[] };
  const other = members.at(-1)?.user_id ?? '';
  const change = (round: number) => setPermissions(client, `${path}/${other}/permissions`, round);

  const times: Record<string, number[]> = {};
  /** Processor time of a read, in ms, without that of the write before it. */
  const measure = (name: string, from: Client, write: (round: number) => Promise<void>) => {
    times[name] = [];
    const process = from === client ? server : bare.child;
    return async () => {
      let [cpu, waited] = [0, 0];
      for (let index = 0; index < readsOfRound; index += 1) {
        await write(index);
        const [used, began] = [cpuSeconds(process), performance.now()];
        await read(from);
        waited += performance.now() - began;
        cpu += cpuSeconds(process) - used;
      }
      times[name]?.push(waited / readsOfRound);
      return (cpu * 1000) / readsOfRound;
    };
  };
  const contestants = {
    key: measure('key', client, () => registerKey(client)),
    member: measure('member', client, change),
    bare: measure('bare', bareClient, async () => {}),
  };
  const cpu = await alternate(warming + rounds, contestants);
  const waits = await probed(scratch, client, contestants.member);

  const row = (title: string, of: Record<string, number[]>, name: string): Row => {
    const [ours, theirs] = [of[name] ?? [], of['bare'] ?? []].map((all) =>
      all.slice(warming, warming + rounds),
    );
    return {
      row: title,
      ours: `${median(ours ?? []).toFixed(1)} ms`,
      reference: `${median(theirs ?? []).toFixed(1)} ms  ${reference}`,
      ratio: medianRatio(ours ?? [], theirs ?? []),
      aim: '',
    };
  };
  const used = row('  processor time of each', cpu, 'key');
  const [late = Number.NaN, bareLate = Number.NaN] = [waits['ours']?.p99Ms, waits['bare']?.p99Ms];
  return {
    rows: [
      row(`GET …/members, ${count}, after a key`, times, 'key'),
      { ...used, aim: `≤ ${aims.cpu}`, met: used.ratio <= aims.cpu },
      row('  after a change of members', times, 'member'),
      row('  processor time of each', cpu, 'member'),
      {
        row: 'GET /me meanwhile, 99th percentile',
        ours: `${late.toFixed(1)} ms`,
        reference: `${bareLate.toFixed(1)} ms  ${reference}`,
        ratio: late / bareLate,
        aim: `< ${aims.waitMs} ms more`,
        met: late - bareLate < aims.waitMs,
      },
    ],
    notes: [],
  };
}

const lab = {
  organizations: [
    {
      slug: 'physics',
      name: 'Physics',
      members: Array.from({ length: count }, (_, index) => ({
        email: `member-${index + 1}@physics.example`,
        username: `member-${index + 1}`,
        ...(index === 0 ? { role: 'owner' } : { role: 'member', permissions: ['clusters.ssh'] }),
      })),
    },
  ],
  clusters: [],
};

async function setPermissions(client: Client, path: string, round: number): Promise<void> {
  const headers = {
    'content-type': 'application/json',
    'idempotency-key': randomUUID(),
    'audit-reason': 'bench',
  };
  const body = JSON.stringify({ permissions: round % 2 === 0 ? ['clusters.read'] : ['clusters.ssh'] });
  await (await client.fetch(path, { method: 'PUT', headers, body })).arrayBuffer();
}

/** How long others wait for `GET /me` while something is done. */
async function probed(scratch: Scratch, client: Client, run: () => Promise<unknown>): Promise<ProbeResult> {
  const request = client.request('/me');
  const { port } = await startBare(scratch, client, '/me');
  const order: ProbeOrder = {
    everyMs: askEveryMs,
    targets: { ours: { port: client.port, request }, bare: { port, request } },
  };
  const probe = scratch.start(program('probe.ts', order), { stdio: ['ignore', 'pipe', 'inherit'] });
  await nextLine(probe);
  for (let round = 0; round < rounds; round += 1) await run();
  probe.kill('SIGTERM');
  return JSON.parse(await nextLine(probe)) as ProbeResult;
}
