/**
 * How long servers keep someone waiting: `node probe.ts <JSON of ProbeOrder>` asks each of them for the same thing every
 * few milliseconds, on a connection of its own, says `asking`, and prints one `ProbeResult` when it is told to end.
 */
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { replyLength } from './load.ts';
import { percentile } from './percentile.ts';

export interface ProbeOrder {
  targets: Record<string, { port: number; request: string }>;
  everyMs: number;
}

export type ProbeResult = Record<string, { asked: number; p50Ms: number; p99Ms: number; worstMs: number }>;

const order = JSON.parse(process.argv[2] ?? '') as ProbeOrder;
let ending = false;
const asking = Object.entries(order.targets).map(async ([name, target]) => {
  const times = await ask(target);
  return [
    name,
    {
      asked: times.length,
      p50Ms: percentile(times, 0.5),
      p99Ms: percentile(times, 0.99),
      worstMs: percentile(times, 1),
    },
  ];
});
process.once('SIGTERM', () => {
  ending = true;
});
process.stdout.write('asking\n');
const result: ProbeResult = Object.fromEntries(await Promise.all(asking));
process.stdout.write(`${JSON.stringify(result)}\n`);

async function ask({ port, request }: ProbeOrder['targets'][string]): Promise<number[]> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  const times: number[] = [];
  const bytes = Buffer.from(request, 'latin1');
  while (!ending) {
    const time = await answerTime(socket, bytes);
    times.push(time);
    // What could not be asked while an answer was awaited is not made up for.
    await sleep(Math.max(0, order.everyMs - time));
  }
  socket.destroy();
  // The first one paid for the connection.
  return times.slice(1);
}

function answerTime(socket: ReturnType<typeof connect>, bytes: Buffer): Promise<number> {
  const began = performance.now();
  return new Promise((resolve, reject) => {
    let expected = 0;
    let received = 0;
    const onData = (data: Buffer) => {
      if (received === 0) expected = replyLength(data);
      received += data.length;
      if (received < expected) return;
      socket.off('data', onData);
      socket.off('error', reject);
      resolve(performance.now() - began);
    };
    socket.on('data', onData);
    socket.once('error', reject);
    socket.write(bytes);
  });
}
