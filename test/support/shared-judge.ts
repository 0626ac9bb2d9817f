/**
 * The judge of a run (`judge.ts`): what the library makes of the documents costs each process a second, so that all files of a
 * run ask the runner's. One line of JSON a question, and one an answer.
 */
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import type { ApiName, Exchange } from './judge.ts';

type Judge = (api: ApiName, exchange: Exchange) => Promise<string[]>;

const addressIn = (shared: string) => join(shared, 'judge');

/** Answers to the files of a run, in the directory that they share. */
export async function startJudge(shared: string, judge: Judge): Promise<AsyncDisposable> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    // A file that was ended asks no more.
    socket.on('error', () => {});
    onLines(socket, async (line) => {
      const { id, api, exchange } = JSON.parse(line);
      const faults = await judge(api, exchange).catch((error: unknown) => [`it was not judged: ${error}`]);
      socket.write(`${JSON.stringify({ id, faults })}\n`);
    });
  });
  await new Promise<void>((done) => server.listen({ path: addressIn(shared), writableAll: true }, done));
  return {
    [Symbol.asyncDispose]: () =>
      new Promise((done) => {
        server.close(() => done());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

interface Line {
  socket: Socket;
  waiting: Map<number, (faults: string[]) => void>;
}

/** By the address. */
const lines = new Map<string, Line>();
let last = 0;

/** What the run's judge finds wrong; that it is not there is a fault as well, for what nobody judged is not fine. */
export function askJudge(shared: string, api: ApiName, exchange: Exchange): Promise<string[]> {
  const address = addressIn(shared);
  const { socket, waiting } = lines.get(address) ?? open(address);
  last += 1;
  const id = last;
  // The file is over when nothing is asked any more.
  socket.ref();
  return new Promise((resolve) => {
    waiting.set(id, resolve);
    socket.write(`${JSON.stringify({ id, api, exchange })}\n`);
  });
}

function open(address: string): Line {
  const socket = connect(address);
  const waiting: Line['waiting'] = new Map();
  lines.set(address, { socket, waiting });
  socket.on('error', () => {});
  socket.on('close', () => {
    lines.delete(address);
    for (const resolve of waiting.values()) resolve(["the run's judge went away"]);
  });
  onLines(socket, (text) => {
    const { id, faults } = JSON.parse(text);
    waiting.get(id)?.(faults);
    waiting.delete(id);
    if (waiting.size === 0) socket.unref();
  });
  return { socket, waiting };
}

/** Only where a line feed is: other ends of lines are in what is judged. */
function onLines(socket: Socket, use: (line: string) => void): void {
  let rest = '';
  socket.setEncoding('utf8').on('data', (part: string) => {
    const all = `${rest}${part}`.split('\n');
    rest = all.pop() ?? '';
    for (const one of all) use(one);
  });
}
