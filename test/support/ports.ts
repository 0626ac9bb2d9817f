import { type AddressInfo, createServer, type Server } from 'node:net';

/** Below the ports that outgoing connections and Slurm labs get, and for each process from a place of its own. */
const first = 10_000;
const last = 20_000;
/** `fetch` asks none there: https://fetch.spec.whatwg.org/#port-blocking */
const blocked = 10_080;
let next = first + ((process.pid * 61) % (last - first));

/** Ports that were free a moment ago, all different. */
export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = [];
  while (ports.length < count) {
    next = next >= last ? first : next + 1;
    // Who asks meanwhile moves `next` on.
    const port = next;
    if (port !== blocked && (await claim(port)) && (await isFree(port))) ports.push(port);
  }
  return ports;
}

/**
 * Takes a port for this process until it ends, among all that ask here: another one would find it free until whoever it is for
 * listens there. The name is in Linux's abstract namespace, which leaves no file behind (unix(7)).
 */
function claim(port: number): Promise<boolean> {
  if (process.platform !== 'linux') return Promise.resolve(true);
  return new Promise((resolve) => {
    const holder = createServer();
    holder.once('error', () => resolve(false));
    holder.listen(`\0andromeda-test-port-${port}`, () => resolve(true)).unref();
  });
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}

/** Has a server listen on this machine, at a port that is free unless one is named. Resolves to that. */
export async function listening(server: Server, port = 0): Promise<number> {
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}
