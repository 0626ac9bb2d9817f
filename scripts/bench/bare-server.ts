/** The reference for HTTP: `node bare-server.ts <JSON of Reply>` sends the same reply to everything, from bare Node. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Reply {
  headers: Record<string, string>;
  body: string;
}

const { headers, body } = JSON.parse(process.argv[2] ?? '') as Reply;
const server = createServer((_request, response) => response.writeHead(200, headers).end(body));
server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port));
