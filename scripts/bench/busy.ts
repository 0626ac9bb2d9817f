/**
 * What people feel while others work: an API call beside four copies through the gateway, and a key pressed beside a
 * thousand idle sessions and people who log in. What the machine itself gives up then shows beside each row: a bare
 * server beside the same copies, and the same sessions and logins without a gateway.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { startTestIssuer } from '../../test/support/issuer.ts';
import { startBare } from './bare.ts';
import { createClient } from './client.ts';
import { echoTimes, openTerminal, type Terminal, terminalOptions } from './echo.ts';
import type { HoldOrder } from './hold.ts';
import { httpInstallations } from './http-installations.ts';
import type { LoginsOrder, LoginsResult } from './logins.ts';
import { percentile } from './percentile.ts';
import type { ProbeOrder, ProbeResult } from './probe.ts';
import { nextLine, program } from './program.ts';
import { median } from './rounds.ts';
import type { Scratch } from './scratch.ts';
import { configureService, startService } from './service.ts';
import { openSshLab, type SshLab, whyNoSsh } from './ssh-lab.ts';
import type { Report, Row } from './table.ts';

const copies = 4;
const askEveryMs = 5;
const askSeconds = 6;
const rounds = 3;
const askAim = 2;
const idleSessions = 1_000;
const perSecond = 50;
const loginSeconds = 8;

export async function benchBusy(scratch: Scratch): Promise<Report> {
  const reason = await whyNoSsh(scratch);
  if (reason) return { rows: [], notes: [`busy is left out: ${reason}.`] };
  const lab = await openSshLab(scratch);
  const beside = await besideCopies(scratch, lab);
  const crowd = await besideLogins(scratch, lab);
  return { rows: [...beside, ...crowd.rows], notes: crowd.notes };
}

async function besideCopies(scratch: Scratch, lab: SshLab): Promise<Row[]> {
  const [installation] = httpInstallations;
  await using issuer = await startTestIssuer(Date.now);
  const service = await configureService(scratch.folder('busy'), {
    lab: installation?.lab ?? {},
    issuer: issuer.url,
  });
  const server = await startService(scratch, service);
  const client = createClient(service.ports.business, `Bearer ${await issuer.token('ada', {}, 3600)}`);
  const bare = await startBare(scratch, client, '/me');
  const request = client.request('/me');
  const ask = async (port: number): Promise<number> => {
    const order: ProbeOrder = { targets: { one: { port, request } }, everyMs: askEveryMs };
    const probe = scratch.start(program('probe.ts', order), { stdio: ['ignore', 'pipe', 'inherit'] });
    await nextLine(probe);
    await sleep(askSeconds * 1_000);
    probe.kill();
    const { one }: ProbeResult = JSON.parse(await nextLine(probe));
    return one?.p99Ms ?? Number.NaN;
  };
  const seen = {
    alone: [] as number[],
    beside: [] as number[],
    bareAlone: [] as number[],
    bare: [] as number[],
  };
  await ask(service.ports.business);
  for (let round = 0; round < rounds; round += 1) {
    seen.alone.push(await ask(service.ports.business));
    seen.bareAlone.push(await ask(bare.port));
    const way = lab.ways().ours;
    const streams = Array.from({ length: copies }, () =>
      scratch.start(['ssh', ...way, 'cat /dev/zero'], { stdio: 'ignore' }),
    );
    await sleep(1_000);
    seen.beside.push(await ask(service.ports.business));
    seen.bare.push(await ask(bare.port));
    for (const stream of streams) await scratch.end(stream);
  }
  await scratch.end(bare.child);
  await scratch.end(server);
  const ratio = median(seen.beside) / median(seen.alone);
  const row = (name: string, busy: number[], alone: number[]): Row => ({
    row: name,
    ours: `${median(busy).toFixed(1)} ms`,
    reference: `${median(alone).toFixed(1)} ms  alone`,
    ratio: median(busy) / median(alone),
    aim: '',
  });
  return [
    {
      ...row(`GET /me beside ${copies} copies, 99th percentile`, seen.beside, seen.alone),
      aim: `≤ ${askAim}`,
      met: ratio <= askAim,
    },
    row('  a bare node:http beside them', seen.bare, seen.bareAlone),
  ];
}

async function besideLogins(scratch: Scratch, lab: SshLab): Promise<Report> {
  const targets = {
    ours: { port: lab.ports.gateway, username: lab.names.gateway },
    direct: { port: lab.ports.node, username: lab.names.node },
  };
  const ways = lab.ways(...terminalOptions);
  const notes: string[] = [];
  const measure = async (way: 'ours' | 'direct') => {
    const terminal = await openTerminal(scratch, ways[way]);
    const alone = await echoTimes(terminal);
    const order: HoldOrder = { count: idleSessions, keyFile: lab.userKeyFile, target: targets[way] };
    const held = scratch.start(program('hold.ts', order), { stdio: ['ignore', 'pipe', 'inherit'] });
    await nextLine(held);
    await sleep(2_000);
    const logins = await loggingIn(scratch, terminal, {
      ...{ perSecond, seconds: loginSeconds },
      ...{ keyFile: lab.userKeyFile, target: targets[way] },
    });
    await scratch.end(held);
    await scratch.end(terminal.child);
    if (logins.failed > 0) notes.push(`busy: ${logins.failed} of the logins (${way}) failed.`);
    return { alone, ...logins };
  };
  const direct = await measure('direct');
  const ours = await measure('ours');
  const row = (name: string, read: (of: typeof ours) => number): Row => ({
    row: name,
    ours: `${read(ours).toFixed(1)} ms`,
    reference: `${read(direct).toFixed(1)} ms  ssh`,
    ratio: read(ours) / read(direct),
    aim: '',
  });
  return {
    rows: [
      row(`${perSecond} logins/s, ${idleSessions} idle sessions: a login`, ({ p50Ms }) => p50Ms),
      row('  99th percentile', ({ p99Ms }) => p99Ms),
      row('  echo beside them', ({ echoes }) => percentile(echoes, 0.5)),
      row('  echo beside them, 99th percentile', ({ echoes }) => percentile(echoes, 0.99)),
      row('  echo before, 99th percentile', ({ alone }) => percentile(alone, 0.99)),
    ],
    notes,
  };
}

/** Presses keys for as long as people log in. */
async function loggingIn(
  scratch: Scratch,
  terminal: Terminal,
  order: LoginsOrder,
): Promise<LoginsResult & { echoes: number[] }> {
  const child = scratch.start(program('logins.ts', order), { stdio: ['ignore', 'pipe', 'inherit'] });
  await nextLine(child);
  let over = false;
  const done = nextLine(child).finally(() => {
    over = true;
  });
  const echoes: number[] = [];
  while (!over) echoes.push(...(await echoTimes(terminal, 20)));
  return { ...(JSON.parse(await done) as LoginsResult), echoes };
}
