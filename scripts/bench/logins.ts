/**
 * People who log in at a steady rate: `node logins.ts <JSON of LoginsOrder>` says `logging in`, logs in, runs `true` and leaves,
 * so many times a second for so long, and prints one `LoginsResult`. A login that is late keeps none of the next ones waiting.
 */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import ssh2 from 'ssh2';
import { percentile } from './percentile.ts';

export interface LoginsOrder {
  perSecond: number;
  seconds: number;
  keyFile: string;
  target: { port: number; username: string };
}

export interface LoginsResult {
  done: number;
  failed: number;
  /** From the connection to the exit status. */
  p50Ms: number;
  p99Ms: number;
}

const order = JSON.parse(process.argv[2] ?? '') as LoginsOrder;
const privateKey = readFileSync(order.keyFile);
const times: number[] = [];
let failed = 0;
process.stdout.write('logging in\n');
const began = performance.now();
const all: Promise<void>[] = [];
for (let count = 0; count < order.perSecond * order.seconds; count += 1) {
  await sleep(Math.max(0, (count / order.perSecond) * 1_000 - (performance.now() - began)));
  all.push(
    logIn().then(
      (ms) => void times.push(ms),
      () => {
        failed += 1;
      },
    ),
  );
}
await Promise.all(all);
const result: LoginsResult = {
  done: times.length,
  failed,
  p50Ms: percentile(times, 0.5),
  p99Ms: percentile(times, 0.99),
};
process.stdout.write(`${JSON.stringify(result)}\n`);

function logIn(): Promise<number> {
  const start = performance.now();
  const client = new ssh2.Client();
  return new Promise<number>((resolve, reject) => {
    client.once('error', reject).once('ready', () => {
      client.exec('true', (error, channel) => {
        if (error) return reject(error);
        channel.resume().once('close', () => resolve(performance.now() - start));
      });
    });
    client.connect({ host: '127.0.0.1', ...order.target, privateKey, readyTimeout: 60_000 });
  }).finally(() => client.end());
}
