/** Local port forwarding to the login node's loopback; every other destination is refused. */
import { connect, type Socket } from 'node:net';
import { loopbackAddresses } from '../../../../ssh/loopback.ts';
import { OPEN_FAILURE } from '../../../../ssh/message-numbers.ts';
import type { Channel } from './channel.ts';
import type { OpenRequest } from './connection.ts';

/** Answers a request for direct-tcpip. */
export async function forward(request: OpenRequest): Promise<void> {
  const host = request.details.text();
  const port = request.details.uint32();
  const addresses = loopbackAddresses(host);
  if (addresses.length === 0 || port < 1 || port > 65535) {
    return request.refuse(OPEN_FAILURE.PROHIBITED, 'only loopback destinations can be forwarded to');
  }
  const socket = await firstConnection(addresses, port);
  if (!socket) return request.refuse(OPEN_FAILURE.CONNECT_FAILED, `nothing answers on ${host} port ${port}`);
  const channel = request.accept();
  if (channel) relay(channel, socket);
  else socket.destroy();
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

function relay(channel: Channel, socket: Socket): void {
  channel.events = {
    data: (chunk) => {
      socket.write(chunk, () => channel.credit(chunk.length));
    },
    eof: () => {
      socket.end();
    },
    closed: () => {
      socket.destroy();
      channel.close();
    },
  };
  socket.on('data', (chunk: Buffer) => {
    if (channel.send('stdout', chunk)) return;
    socket.pause();
    channel.onceDrained(() => socket.resume());
  });
  socket.on('end', () => channel.onceEmpty(() => channel.eof()));
  socket.on('close', () => channel.onceEmpty(() => channel.close()));
}
