/** One request asked of the service and of a bare server with the same bytes, by turns, under the same load. */
import type { ChildProcess } from 'node:child_process';
import { type Bare, startBare } from './bare.ts';
import type { Client } from './client.ts';
import type { Cores } from './cores.ts';
import type { LoadOrder, LoadResult } from './load.ts';
import { program } from './program.ts';
import { alternate, median, medianRatio } from './rounds.ts';
import type { Scratch } from './scratch.ts';
import type { Report, Row } from './table.ts';
import { cpuSeconds } from './usage.ts';

const rounds = 5;
const seconds = 0.8;
/** A round that does not count: V8 compiles what is hot. */
const warming = 1;
const connections = 32;
const aim = 0.25;
const name = 'bare node:http';

export interface Arena {
  scratch: Scratch;
  cores: Cores | undefined;
  /** The service's process. */
  server: ChildProcess;
}

type Reading = LoadResult & { cpuMicros: number };

/** Rate and processor time of `GET path`. The bare server is the caller's to read and to end. */
export async function contest(
  arena: Arena,
  { title, client, path }: { title: string; client: Client; path: string },
): Promise<Report & { bare: Bare }> {
  const bare = await startBare(arena.scratch, client, path, arena.cores?.server);
  const request = client.request(path);
  const seen: Record<'ours' | 'bare', Reading[]> = { ours: [], bare: [] };
  const measure = (side: 'ours' | 'bare', server: ChildProcess, port: number) => async () => {
    const reading = await loaded(arena, server, { port, request, connections, seconds });
    seen[side].push(reading);
    return reading.perSecond;
  };
  await alternate(warming + rounds, {
    ours: measure('ours', arena.server, client.port),
    bare: measure('bare', bare.child, bare.port),
  });
  const read = (side: 'ours' | 'bare', key: keyof Reading) =>
    seen[side].slice(warming).map((reading) => reading[key]);
  const [rate, bareRate] = [read('ours', 'perSecond'), read('bare', 'perSecond')];
  const [cpu, bareCpu] = [read('ours', 'cpuMicros'), read('bare', 'cpuMicros')];
  const [ratio, cpuRatio] = [medianRatio(rate, bareRate), medianRatio(cpu, bareCpu)];
  const rows: Row[] = [
    {
      row: title,
      ours: `${median(rate).toFixed(0)}/s`,
      reference: `${median(bareRate).toFixed(0)}/s  ${name}`,
      ratio,
      aim: `≥ ${aim}`,
      met: ratio >= aim,
    },
    {
      // What a busy machine takes from one side only spoils the row above, and not this one.
      row: '  processor time of each',
      ours: `${median(cpu).toFixed(0)} µs`,
      reference: `${median(bareCpu).toFixed(0)} µs  ${name}`,
      ratio: cpuRatio,
      aim: `≤ ${1 / aim}`,
      met: cpuRatio <= 1 / aim,
    },
  ];
  const notes =
    Math.max(...read('bare', 'busy')) > 0.9
      ? [
          `http: the load generator was at its limit in ${title}, so the reference is faster than the table says.`,
        ]
      : [];
  return { rows, notes, bare };
}

/** Answer times under one long load without a break, so that what comes rarely is in it; the reference's around it. */
export async function endurance(
  arena: Arena,
  bare: Bare,
  order: { title: string; client: Client; path: string; seconds: number; aimMs: number },
): Promise<Row[]> {
  const { title, client, path, aimMs } = order;
  const request = client.request(path);
  const reference = () => loaded(arena, bare.child, { port: bare.port, request, connections, seconds });
  const before = await reference();
  const long: LoadOrder = { port: client.port, request, connections, seconds: order.seconds };
  const ours = await loaded(arena, arena.server, long);
  const after = await reference();
  const row = (what: string, key: 'p99Ms' | 'worstMs'): Row => {
    const around = median([before[key], after[key]]);
    return {
      row: `${title}, ${what}`,
      ours: `${ours[key].toFixed(1)} ms`,
      reference: `${around.toFixed(1)} ms  ${name}`,
      ratio: ours[key] / around,
      aim: '',
    };
  };
  return [
    { ...row('99th percentile', 'p99Ms'), aim: `< ${aimMs} ms`, met: ours.p99Ms < aimMs },
    row('the worst', 'worstMs'),
  ];
}

async function loaded({ scratch, cores }: Arena, server: ChildProcess, order: LoadOrder): Promise<Reading> {
  const before = cpuSeconds(server);
  const result: LoadResult = JSON.parse(
    await scratch.run([...(cores?.load ?? []), ...program('load.ts', order)]),
  );
  return { ...result, cpuMicros: ((cpuSeconds(server) - before) / result.requests) * 1e6 };
}
