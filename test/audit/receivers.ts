/** Receivers of the audit trail: a webhook's server and a syslog server that take nothing on trust, and fail as they are told. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { createServer as createTlsServer, type TLSSocket, type TlsOptions } from 'node:tls';
import type { TestCertificate } from '../support/certificate.ts';

export type Line = { kind: string; seq: number; hash: string; target?: string };
export type Batch = { id: string; lines: Line[] };

/** What becomes of a request whose signature is right; it was answered well when this answers 2xx. */
export type Behaviour = (batch: Batch, response: ServerResponse, request: IncomingMessage) => void;

export const accept: Behaviour = (_, response) => void response.writeHead(204).end();

/** An HTTPS server that checks each signature as Standard Webhooks says, in the receiver's own words. */
export async function startWebhook(certificate: TestCertificate, secret: Buffer, port = 0) {
  const state = { behave: accept, answered: [] as Batch[], asked: 0, faults: [] as string[] };
  const take: RequestListener = async (request, response) => {
    state.asked += 1;
    const parts: Buffer[] = [];
    request.on('error', () => {});
    for await (const part of request) parts.push(part);
    const body = Buffer.concat(parts).toString('utf8');
    const {
      'webhook-id': id,
      'webhook-timestamp': at,
      'webhook-signature': signature = '',
    } = request.headers;
    const expected = createHmac('sha256', secret).update(`${id}.${at}.${body}`).digest();
    const given = `${signature}`.split(' ').map((one) => Buffer.from(one.replace(/^v1,/, ''), 'base64'));
    if (!given.some((one) => one.length === 32 && timingSafeEqual(one, expected)))
      state.faults.push(`signature ${signature}`);
    if (Math.abs(Date.now() / 1000 - Number(at)) > 60) state.faults.push(`timestamp ${at}`);
    if (request.method !== 'POST' || request.headers['content-type'] !== 'application/json')
      state.faults.push(`${request.method} ${request.headers['content-type']}`);
    if (body.length > 200_000 || /[^\x20-\x7e\n]/.test(body)) state.faults.push(`body of ${body.length}`);
    const batch = { id: `${id}`, lines: JSON.parse(body) };
    response.on('finish', () => {
      if (response.statusCode < 300) state.answered.push(batch);
    });
    state.behave(batch, response, request);
  };
  const sockets = new Set<Socket>();
  const server = createHttpsServer({ ...certificate }, take);
  server.on('connection', (socket: Socket) => {
    sockets.add(socket.on('close', () => sockets.delete(socket)));
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return Object.assign(state, {
    url: new URL(`https://127.0.0.1:${(server.address() as AddressInfo).port}/hook?of=andromeda`),
    lines: () => state.answered.flatMap(({ lines }) => lines),
    async [Symbol.asyncDispose]() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  });
}

export const entriesOf = (lines: Line[]) =>
  lines.filter(({ kind }) => kind === 'entry').map(({ seq }) => seq);
export const upTo = (last: number, from = 1) =>
  Array.from({ length: last - from + 1 }, (_, index) => from + index);

/** RFC 5424, section 6: header, structured data, and the message. */
const rfc5424 =
  /^<(\d{1,3})>1 (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?Z) ([\x21-\x7e]{1,255}) ([\x21-\x7e]{1,48}) ([\x21-\x7e]{1,128}) ([\x21-\x7e]{1,32}) - (.*)$/s;

/** The messages of a connection by RFC 5425, section 4.3, to the last byte. Throws where it is anything else. */
function parseFrames(text: string): Line[] {
  const lines: Line[] = [];
  let rest = text;
  while (rest !== '') {
    const [prefix = '', length = ''] = /^([1-9]\d*) /.exec(rest) ?? [];
    const message = rest.slice(prefix.length, prefix.length + Number(length));
    if (prefix === '' || message.length !== Number(length)) throw new Error(`frame ${rest.slice(0, 80)}`);
    const [, priority, , , app, , id = '', body = ''] = rfc5424.exec(message) ?? [];
    const line = JSON.parse(body) as Line;
    if (priority !== '110' || app !== 'andromeda' || id !== `audit-${line.kind}`) throw new Error(message);
    lines.push(line);
    rest = rest.slice(prefix.length + Number(length));
  }
  return lines;
}

/** A syslog server over TLS. `behave` is handed each connection; `read` reads one to its end, and closes it in return. */
export async function startSyslog(options: TlsOptions) {
  const sockets = new Set<TLSSocket>();
  const read = (socket: TLSSocket) => {
    let text = '';
    socket.setEncoding('latin1').on('data', (part: string) => {
      text += part;
    });
    socket.on('end', () => {
      state.lines.push(...parseFrames(text));
      state.names.push(`${socket.getPeerCertificate()?.subject?.CN ?? ''}`);
      socket.end();
    });
  };
  const state = { lines: [] as Line[], names: [] as string[], connections: 0, behave: read, read };
  const server = createTlsServer({ ...options, allowHalfOpen: true }, (socket) => {
    state.connections += 1;
    sockets.add(socket.on('close', () => sockets.delete(socket)).on('error', () => {}) as TLSSocket);
    state.behave(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return Object.assign(state, {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  });
}
