/**
 * `GET /me` with a token, 32 connections, against a bare `node:http` that sends the same bytes. Each server and the
 * load have a core of their own where that can be had. Memory is read from the same processes.
 */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { startTestIssuer } from '../../test/support/issuer.ts';
import type { Reply } from './bare-server.ts';
import { twoCores } from './cores.ts';
import type { LoadOrder, LoadResult } from './load.ts';
import { byTurns, median, medianRatio } from './rounds.ts';
import type { Scratch } from './scratch.ts';
import { configureService, serving } from './service.ts';
import type { Report } from './table.ts';

const rounds = 9;
const seconds = 1.5;
/** Rounds that do not count: V8 compiles what is hot. */
const warming = 2;
const connections = 32;
const aim = 0.25;

const lab = {
  organizations: [
    {
      slug: 'physics',
      name: 'Physics',
      members: [{ email: 'ada@physics.example', role: 'owner', username: 'ada' }],
    },
  ],
};

export async function benchHttp(scratch: Scratch): Promise<Report> {
  const cores = twoCores();
  const file = (name: string) => join(import.meta.dirname, name);
  const node = (name: string, input: object) => [process.execPath, file(name), JSON.stringify(input)];

  await using issuer = await startTestIssuer(Date.now);
  const service = await configureService(scratch.folder('http'), { lab, issuer: issuer.url });
  const ours = scratch.start([...(cores?.server ?? []), ...service.command]);
  await serving(service);
  const url = `http://127.0.0.1:${service.ports.business}/me`;
  const authorization = `Bearer ${await issuer.token('ada', {}, 3600)}`;
  const reply = await replyOf(await fetch(url, { headers: { authorization } }));
  const bare = scratch.start([...(cores?.server ?? []), ...node('bare-server.ts', reply)]);
  const barePort = await printedPort(bare);
  const memory = { before: memoryMiB(ours), bareBefore: memoryMiB(bare), after: 0, bareAfter: 0 };

  const results: Record<'ours' | 'bare', (LoadResult & { cpuMicros: number })[]> = { ours: [], bare: [] };
  const contest = (name: 'ours' | 'bare', server: ChildProcess, port: number) => async () => {
    const request = `GET /me HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${authorization}\r\nAccept: */*\r\n\r\n`;
    const order: LoadOrder = { port, request, connections, seconds };
    const before = cpuSeconds(server);
    const result: LoadResult = JSON.parse(
      await scratch.run([...(cores?.load ?? []), ...node('load.ts', order)]),
    );
    const cpuMicros = ((cpuSeconds(server) - before) / result.requests) * 1e6;
    results[name].push({ ...result, cpuMicros });
    return result.perSecond;
  };
  await byTurns(warming + rounds, {
    ours: contest('ours', ours, service.ports.business),
    bare: contest('bare', bare, barePort),
  });
  memory.after = memoryMiB(ours);
  memory.bareAfter = memoryMiB(bare);

  const read = (name: 'ours' | 'bare', key: keyof LoadResult | 'cpuMicros') =>
    results[name].slice(warming).map((result) => result[key]);
  const [rate, bareRate] = [read('ours', 'perSecond'), read('bare', 'perSecond')];
  const [p99, bareP99] = [read('ours', 'p99Ms'), read('bare', 'p99Ms')];
  const [cpu, bareCpu] = [read('ours', 'cpuMicros'), read('bare', 'cpuMicros')];
  const ratio = medianRatio(rate, bareRate);
  const notes = cores
    ? []
    : ['http: no taskset or no second core, so servers and load shared what there is.'];
  if (Math.max(...read('bare', 'busy')) > 0.9)
    notes.push('http: the load generator was at its limit, so the reference is faster than the table says.');
  return {
    rows: [
      {
        row: 'GET /me, 32 connections',
        ours: `${median(rate).toFixed(0)}/s`,
        reference: `${median(bareRate).toFixed(0)}/s  bare node:http`,
        ratio,
        aim: `≥ ${aim}`,
        met: ratio >= aim,
      },
      {
        row: 'GET /me, 99th percentile',
        ours: `${median(p99).toFixed(1)} ms`,
        reference: `${median(bareP99).toFixed(1)} ms  bare node:http`,
        ratio: medianRatio(p99, bareP99),
        aim: '',
      },
      {
        // What a busy machine takes from one side only spoils the two rows above, and not this one.
        row: 'GET /me, processor time',
        ours: `${median(cpu).toFixed(0)} µs`,
        reference: `${median(bareCpu).toFixed(0)} µs  bare node:http`,
        ratio: medianRatio(cpu, bareCpu),
        aim: `≤ ${1 / aim}`,
        met: medianRatio(cpu, bareCpu) <= 1 / aim,
      },
      memoryRow('memory after start', memory.before, memory.bareBefore),
      memoryRow('memory after the load', memory.after, memory.bareAfter),
    ],
    notes,
  };
}

function memoryRow(row: string, ours: number, bare: number) {
  const text = (mib: number) => `${mib.toFixed(0)} MiB`;
  return { row, ours: text(ours), reference: `${text(bare)}  bare node:http`, ratio: ours / bare, aim: '' };
}

/** What the reference sends: our body and our headers, but for those that Node adds itself. */
async function replyOf(response: Response): Promise<Reply> {
  if (response.status !== 200) throw new Error(`GET /me answers ${response.status}`);
  const own = ['date', 'connection', 'keep-alive'];
  const headers = Object.fromEntries([...response.headers].filter(([name]) => !own.includes(name)));
  return { headers, body: await response.text() };
}

async function printedPort(child: ChildProcess): Promise<number> {
  if (!child.stdout) throw new Error('no output to read a port from');
  const [data] = await once(child.stdout, 'data');
  return Number(data);
}

/** Processor time so far, of all threads, user and system; the kernel counts in hundredths of a second. */
function cpuSeconds(child: ChildProcess): number {
  const stat = readFileSync(`/proc/${child.pid}/stat`, 'utf8');
  // The program's name, in brackets, may hold anything; what is counted comes after it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/** Resident memory, as the kernel counts it. */
function memoryMiB(child: ChildProcess): number {
  const kib = /^VmRSS:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1];
  return Number(kib) / 1024;
}
