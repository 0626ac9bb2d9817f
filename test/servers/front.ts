/** A proxy in front of several servers that sends each request to another one than the last: nobody stays with a server. */
import { request as ask, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Front extends AsyncDisposable {
  url: string;
  /** "host:port" of each server. */
  servers: string[];
  /** The one that all requests go to; undefined: in turn. */
  only: number | undefined;
}

export async function startFront(): Promise<Front> {
  let turn = 0;
  const server = createServer((incoming, outgoing) => {
    turn += 1;
    const at = front.servers[front.only ?? turn % Math.max(front.servers.length, 1)];
    const [host, port] = (at ?? '').split(':');
    const { method, url: path } = incoming;
    const headers = { ...incoming.headers, 'x-forwarded-for': incoming.socket.remoteAddress };
    const onward = ask({ host, port, method, path, headers, agent: false }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      // What is gathered would keep a stream from its reader.
      outgoing.flushHeaders();
      answer.pipe(outgoing);
      outgoing.once('close', () => answer.destroy());
    });
    onward.on('error', () => outgoing.destroy());
    incoming.pipe(onward);
    outgoing.once('close', () => onward.destroy());
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const front: Front = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    servers: [],
    only: undefined,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
  return front;
}
