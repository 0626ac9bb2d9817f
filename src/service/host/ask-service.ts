/** Requests to a service on this host: the reply at an address, its readiness, and a reload of its settings. */
import { openSync } from 'node:fs';
import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { DomainError } from '../../domain/error.ts';
import { type Address, type HttpConfig, readConfig } from '../config/index.ts';
import { refusal, runCommand } from './installation.ts';

const mostAnswer = 16_384;

export function getRequest(path: string, { host }: Address): string {
  return `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;
}

/** The beginning of a listener's reply: until it matches `enough`, or until the timeout. It never rejects. */
export function askListener(
  { host, port }: Address,
  { send, tls, enough, limitMs }: { send: string; tls: boolean; enough?: RegExp; limitMs: number },
): Promise<string> {
  const at = { host: { '0.0.0.0': '127.0.0.1', '::': '::1' }[host] ?? host, port };
  return new Promise((resolve) => {
    let text = '';
    // Nothing secret is sent, and the certificate has another name than the address.
    const socket = tls ? connectTls({ ...at, rejectUnauthorized: false }) : connect(at);
    const end = () => {
      clearTimeout(limit);
      socket.destroy();
      resolve(text);
    };
    const limit = setTimeout(end, limitMs);
    socket.on('data', (part: Buffer) => {
      text += part.toString('latin1');
      if (enough?.test(text) || text.length > mostAnswer) end();
    });
    socket.on('error', end);
    socket.on('close', end);
    socket.write(send, 'latin1');
  });
}

interface Readiness {
  obstacle: string | undefined;
}

const readyMs = 7_000;

/**
 * The readiness of a service at an API's address (`GET /readyz`). Undefined: nothing of ours answers. It asks with
 * the configured TLS first, and then without, which the service logs: it may run with the setting of before.
 */
export async function askReadiness({ listen, tls }: HttpConfig): Promise<Readiness | undefined> {
  const send = getRequest('/readyz', listen);
  for (const isTls of [tls !== undefined, tls === undefined]) {
    const answer = readinessOf(await askListener(listen, { send, tls: isTls, limitMs: readyMs }));
    if (answer) return answer;
  }
  return undefined;
}

function readinessOf(answer: string): Readiness | undefined {
  const [, body = ''] = /\r\n\r\n(.*)$/s.exec(answer) ?? [];
  try {
    const { status, code, message } = JSON.parse(Buffer.from(body, 'latin1').toString('utf8'));
    if (status === 'ready') return { obstacle: undefined };
    return typeof code === 'string' && typeof message === 'string' ? { obstacle: message } : undefined;
  } catch {
    return undefined;
  }
}

/** `andromeda service ready`, for a container's health check. Resolves to the exit status: 0 where it serves, else 1 with a sentence. */
export async function askService({ config }: { config: string }): Promise<number> {
  return runCommand(async () => {
    const { business } = readConfig(config);
    const answer = await askReadiness(business);
    const address = `${business.listen.host}:${business.listen.port}`;
    if (!answer) throw new DomainError('service_unavailable', `No service of ours answers at ${address}.`);
    if (answer.obstacle !== undefined) throw new DomainError('service_unavailable', answer.obstacle);
    return 'The service serves.\n';
  });
}

/** `andromeda service reload`. Resolves to the exit status when the service has taken up the settings, or refused them: then 1. */
export async function reloadService({ config }: { config: string }): Promise<number> {
  return runCommand(async () => {
    const reason = await askForReload(readConfig(config).dataDir);
    if (reason !== undefined) throw refusal(`Not reloaded: ${reason}`);
    return `The service goes on with ${config}.\n`;
  });
}

/** Makes the service of a data directory reload. Resolves to the reason of a refusal, if any. Throws where no service runs. */
export async function askForReload(dataDir: string): Promise<string | undefined> {
  let answer = '';
  try {
    for await (const part of connect(reloadSocket(dataDir)).setEncoding('utf8')) answer += part;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const reason = code === 'EACCES' ? 'this account may not ask it' : 'none runs';
    throw new DomainError(
      'service_unavailable',
      `The service of ${dataDir} cannot be asked: ${reason}. Run this as root, or as its account; a service with another dataDir takes a restart.`,
    );
  }
  if (answer === '')
    throw new DomainError('service_unavailable', 'The service ended meanwhile. Its log says why.');
  return (JSON.parse(answer) as { refusal?: string }).refusal;
}

/** A short path through a descriptor, as a socket's path has at most 107 bytes. */
export function reloadSocket(dataDir: string): string {
  return `/proc/self/fd/${openSync(dataDir, 'r')}/reload.sock`;
}
