/** Starting the bare server that answers as the service just did. */
import type { ChildProcess } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { BareOrder, Reply } from './bare-server.ts';
import type { Client } from './client.ts';
import { nextLine, program } from './program.ts';
import type { Scratch } from './scratch.ts';
import { memoryMiB } from './usage.ts';

export interface Bare {
  child: ChildProcess;
  port: number;
  memoryAtStart: number;
}

/** Starts one that sends what the service sends now for a path: body and headers. `pin` goes before its command. */
export async function startBare(
  scratch: Scratch,
  client: Client,
  path: string,
  pin: readonly string[] = [],
): Promise<Bare> {
  const order: BareOrder = { replyFile: join(scratch.folder('bare'), 'reply.json') };
  writeFileSync(order.replyFile, JSON.stringify(await replyOf(await client.fetch(path))));
  const child = scratch.start([...pin, ...program('bare-server.ts', order)]);
  const port = Number(await nextLine(child));
  return { child, port, memoryAtStart: memoryMiB(child) };
}

/** All headers but those that Node adds itself. */
async function replyOf(response: Response): Promise<Reply> {
  const own = ['date', 'connection', 'keep-alive'];
  const headers = Object.fromEntries([...response.headers].filter(([name]) => !own.includes(name)));
  return { headers, body: await response.text() };
}
