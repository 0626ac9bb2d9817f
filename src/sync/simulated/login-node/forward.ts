/** Local port forwarding to the login node's loopback; every other destination is refused. */
import { connect, type Socket } from 'node:net';
import { loopbackAddresses } from '../../../lib/loopback.ts';
import type { Channel } from './channel.ts';

/** Answers a request for a connection to somewhere, with `open` or `reject`. */
export async function forward(
  { host, port }: { host: string; port: number },
  open: () => Channel,
  reject: () => void,
): Promise<void> {
  const socket = port < 1 || port > 65535 ? undefined : await firstConnection(loopbackAddresses(host), port);
  if (!socket) return reject();
  const channel = open();
  channel.onClosed = (_, proceed) => {
    socket.destroy();
    proceed();
  };
  channel.pipeTo(socket);
  const isFlushed = new Promise((resolve) => socket.once('close', resolve));
  await channel.sendAll('stdout', socket);
  channel.eof();
  await isFlushed;
  channel.close();
}

async function firstConnection(addresses: string[], port: number): Promise<Socket | undefined> {
  for (const host of addresses) {
    const socket = await new Promise<Socket | undefined>((resolve) => {
      const attempt = connect({ host, port, allowHalfOpen: true, noDelay: true });
      attempt.once('connect', () => resolve(attempt));
      attempt.on('error', () => resolve(undefined));
    });
    if (socket) return socket;
  }
  return undefined;
}
