/**
 * The reference for HTTP: `node bare-server.ts <JSON of BareOrder>` sends the same reply to everything, from bare Node,
 * and prints its port. The reply comes from a file, for it may be longer than an argument may be.
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface BareOrder {
  /** Holds a `Reply` as JSON. */
  replyFile: string;
}

export interface Reply {
  headers: Record<string, string>;
  body: string;
}

const { replyFile } = JSON.parse(process.argv[2] ?? '') as BareOrder;
const { headers, body } = JSON.parse(readFileSync(replyFile, 'utf8')) as Reply;
const server = createServer((_request, response) => response.writeHead(200, headers).end(body));
server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port));
