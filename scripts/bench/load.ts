/**
 * The load generator, a process of its own: `node load.ts <JSON of LoadOrder>` prints one `LoadResult`. Requests are
 * prepared buffers, replies are counted by length, so that the server is the bottleneck and never this.
 */
import { connect, type Socket } from 'node:net';
import { percentile } from './percentile.ts';

export interface LoadOrder {
  port: number;
  /** The whole request, as sent. */
  request: string;
  connections: number;
  seconds: number;
}

export interface LoadResult {
  requests: number;
  perSecond: number;
  medianMs: number;
  p99Ms: number;
  worstMs: number;
  /** The share of its core that the generator used; near 1 it was the bottleneck itself. */
  busy: number;
}

if (import.meta.main) {
  const order = JSON.parse(process.argv[2] ?? '') as LoadOrder;
  const bytes = Buffer.from(order.request, 'latin1');
  process.stdout.write(`${JSON.stringify(await load(order, () => bytes))}\n`);
}

/** Each connection sends what `next` makes, waits for the whole reply and sends again, until the time is over. */
export async function load(
  { port, connections, seconds }: Omit<LoadOrder, 'request'>,
  next: () => Buffer,
): Promise<LoadResult> {
  const latencies: number[] = [];
  const began = performance.now();
  const cpu = process.cpuUsage();
  const until = began + seconds * 1000;
  await Promise.all(Array.from({ length: connections }, () => one(port, next, until, latencies)));
  const elapsed = performance.now() - began;
  const { user, system } = process.cpuUsage(cpu);
  return {
    requests: latencies.length,
    perSecond: latencies.length / (elapsed / 1000),
    medianMs: percentile(latencies, 0.5),
    p99Ms: percentile(latencies, 0.99),
    worstMs: percentile(latencies, 1),
    busy: (user + system) / 1000 / elapsed,
  };
}

function one(port: number, next: () => Buffer, until: number, latencies: number[]): Promise<void> {
  return new Promise((resolve, reject) => {
    let sent = 0;
    let expected = 0;
    let received = 0;
    const socket: Socket = connect({ port, host: '127.0.0.1', noDelay: true }, ask);
    socket.on('error', reject);
    socket.on('close', () => reject(new Error('the server closed a connection under load')));
    socket.on('data', (data) => {
      if (received === 0) expected = replyLength(data);
      received += data.length;
      if (received < expected) return;
      const now = performance.now();
      latencies.push(now - sent);
      if (now < until) return ask();
      resolve();
      socket.destroy();
    });

    function ask() {
      const bytes = next();
      received = 0;
      sent = performance.now();
      socket.write(bytes);
    }
  });
}

/** How long the reply is that begins here. Throws when it is not a success with a length. */
export function replyLength(data: Buffer): number {
  const end = data.indexOf('\r\n\r\n');
  const head = data.toString('latin1', 0, end);
  const length = /content-length: (\d+)/i.exec(head)?.[1];
  if (!/^HTTP\/1\.1 20[01] /.test(head) || length === undefined) throw new Error(`not the reply: ${head}`);
  return end + 4 + Number(length);
}
