/**
 * The load generator, a process of its own: `node load.ts <JSON of LoadOrder>` prints one `LoadResult`. Requests are
 * one prepared buffer, replies are counted by length, so that the server is the bottleneck and never this.
 */
import { connect, type Socket } from 'node:net';

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
  p99Ms: number;
  /** The share of its core that the generator used; near 1 it was the bottleneck itself. */
  busy: number;
}

if (import.meta.main) {
  const order = JSON.parse(process.argv[2] ?? '') as LoadOrder;
  process.stdout.write(`${JSON.stringify(await load(order))}\n`);
}

async function load({ port, request, connections, seconds }: LoadOrder): Promise<LoadResult> {
  const bytes = Buffer.from(request, 'latin1');
  const latencies: number[] = [];
  const began = performance.now();
  const cpu = process.cpuUsage();
  const until = began + seconds * 1000;
  await Promise.all(Array.from({ length: connections }, () => one(port, bytes, until, latencies)));
  const elapsed = performance.now() - began;
  const { user, system } = process.cpuUsage(cpu);
  latencies.sort((a, b) => a - b);
  return {
    requests: latencies.length,
    perSecond: latencies.length / (elapsed / 1000),
    p99Ms: latencies[Math.floor(latencies.length * 0.99)] ?? Number.NaN,
    busy: (user + system) / 1000 / elapsed,
  };
}

/** One connection: a request, its whole reply, the next request, until the time is over. */
function one(port: number, bytes: Buffer, until: number, latencies: number[]): Promise<void> {
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
      received = 0;
      sent = performance.now();
      socket.write(bytes);
    }
  });
}

/** How long the reply is that begins here. Throws when it is not a 200 with a length. */
function replyLength(data: Buffer): number {
  const end = data.indexOf('\r\n\r\n');
  const head = data.toString('latin1', 0, end);
  const length = /content-length: (\d+)/i.exec(head)?.[1];
  if (!head.startsWith('HTTP/1.1 200') || length === undefined) throw new Error(`not the reply: ${head}`);
  return end + 4 + Number(length);
}
