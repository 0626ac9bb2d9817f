/**
 * A network that is far away: `node delay.ts <JSON of DelayOrder>` says `delaying`, and relays each port to its target, every byte
 * late by the same time each way, however many there are.
 */
import { connect, createServer, type Socket } from 'node:net';

export interface DelayOrder {
  /** One way, in ms. */
  delayMs: number;
  /** From the port that it listens on to the one that it relays to, both on loopback. */
  ports: [from: number, to: number][];
}

const { delayMs, ports } = JSON.parse(process.argv[2] ?? '') as DelayOrder;

for (const [from, to] of ports) {
  const server = createServer({ noDelay: true }, (near) => {
    const far = connect({ port: to, host: '127.0.0.1', noDelay: true });
    for (const [source, target] of [
      [near, far],
      [far, near],
    ] as const)
      relay(source, target);
  });
  await new Promise<void>((resolve) => server.listen(from, '127.0.0.1', resolve));
}
process.stdout.write('delaying\n');

function relay(source: Socket, target: Socket): void {
  source
    .on('data', (data) => void setTimeout(() => target.write(data), delayMs))
    .on('end', () => void setTimeout(() => target.end(), delayMs))
    .on('error', () => target.destroy())
    .on('close', () => void setTimeout(() => target.destroy(), delayMs * 2));
}
