import { connect, type Socket } from 'node:net';

/** A connection through a SOCKS 5 proxy (RFC 1928), or undefined where it says no. */
export async function throughSocks(proxy: number, host: string, port: number): Promise<Socket | undefined> {
  const socket = connect({ port: proxy, host: '127.0.0.1', allowHalfOpen: true });
  const next = () =>
    new Promise<Buffer>((resolve) => {
      socket.once('data', resolve);
      for (const event of ['end', 'error']) socket.once(event, () => resolve(Buffer.alloc(0)));
    });
  socket.write(Buffer.from([5, 1, 0]));
  await next();
  const name = Buffer.from(host);
  const to = [Buffer.from([5, 1, 0, 3, name.length]), name, Buffer.from([port >> 8, port & 0xff])];
  socket.write(Buffer.concat(to));
  if ((await next())[1] === 0) return socket;
  socket.destroy();
  return undefined;
}
