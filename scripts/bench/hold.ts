/**
 * Sessions that do nothing: `node hold.ts <JSON of HoldOrder>` opens them, says `open`, and holds them until it is ended.
 * Through a jump host where one is named, as `ssh -J` does it.
 */
import { readFileSync } from 'node:fs';
import ssh2 from 'ssh2';

export interface HoldOrder {
  count: number;
  keyFile: string;
  target: LoginTarget;
  jump?: LoginTarget;
}

interface LoginTarget {
  port: number;
  username: string;
}

const order = JSON.parse(process.argv[2] ?? '') as HoldOrder;
const privateKey = readFileSync(order.keyFile);
const atOnce = 16;

const numbers = Array.from({ length: order.count }, (_, i) => i);
await Promise.all(
  Array.from({ length: atOnce }, async () => {
    while (numbers.pop() !== undefined) await openSession();
  }),
);
process.stdout.write('open\n');

/** A shell in a terminal. */
async function openSession(): Promise<void> {
  const { target, jump } = order;
  const client = jump ? await logIn(target, await through(jump, target.port)) : await logIn(target);
  await new Promise<void>((resolve, reject) => {
    client.shell((error, stream) => {
      if (error) return reject(error);
      stream.resume();
      resolve();
    });
  });
}

async function through(jump: LoginTarget, port: number): Promise<ssh2.ClientChannel> {
  const client = await logIn(jump);
  return new Promise((resolve, reject) => {
    client.forwardOut('127.0.0.1', 0, '127.0.0.1', port, (error, stream) =>
      error ? reject(error) : resolve(stream),
    );
  });
}

function logIn({ port, username }: LoginTarget, sock?: ssh2.ClientChannel): Promise<ssh2.Client> {
  const client = new ssh2.Client();
  return new Promise((resolve, reject) => {
    client.once('ready', () => resolve(client)).once('error', reject);
    client.connect({ host: '127.0.0.1', port, username, privateKey, ...(sock && { sock }) });
  });
}
