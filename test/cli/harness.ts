/** Runs the real program against small servers, with a state directory of its own. */
import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import type { Session } from '../../src/cli/session/session.ts';

const root = join(import.meta.dirname, '../..');
const program = join(root, 'scripts/andromeda');
/** Halves the start-up of the many processes these tests run. */
export const compiled = {
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? join(root, 'node_modules/.cache/test-cli'),
};
/** Not the credential store of whoever runs the tests. */
const store = { ANDROMEDA_CREDENTIAL_STORE: 'file' };

export interface Result {
  status: number | null;
  stdout: string;
  stderr: string;
  bytes: Buffer;
}

export interface Running {
  result: Promise<Result>;
  /** Resolves once stdout contains `text`. */
  seen(text: string): Promise<void>;
  interrupt(): void;
  terminate(): void;
}

/** One machine's worth of state; `run` starts the program in it. */
export async function createMachine(t: TestContext) {
  const stateHome = await mkdtemp(join(tmpdir(), 'andromeda-cli-'));
  t.after(() => rm(stateHome, { recursive: true, force: true }));
  const directory = join(stateHome, 'andromeda');

  const start = (
    args: string[],
    { input = '', env = {} }: { input?: string; env?: Record<string, string> } = {},
  ): Running => {
    const child = spawn(program, args, {
      timeout: 120_000,
      env: {
        PATH: process.env.PATH,
        HOME: stateHome,
        XDG_STATE_HOME: stateHome,
        ...store,
        ...compiled,
        ...env,
      },
    });
    child.stdin.on('error', () => {}); // the program need not read it
    child.stdin.end(input);
    let text = '';
    const seen = (wanted: string) =>
      new Promise<void>((resolve, reject) => {
        const check = () => text.includes(wanted) && resolve();
        child.stdout.on('data', check);
        child.on('close', () => reject(new Error(`ended without '${wanted}': ${text}`)));
        check();
      });
    child.stdout.on('data', (chunk: Buffer) => {
      text += chunk.toString('utf8');
    });
    const result = (async () => {
      const closed = new Promise<number | null>((resolve) => child.on('close', resolve));
      const [bytes, errors, status] = await Promise.all([buffer(child.stdout), buffer(child.stderr), closed]);
      return { status, bytes, stdout: bytes.toString('utf8'), stderr: errors.toString('utf8') };
    })();
    return {
      result,
      seen,
      interrupt: () => child.kill('SIGINT'),
      terminate: () => child.kill('SIGTERM'),
    };
  };

  return {
    directory,
    start,
    run: (args: string[], options: { input?: string; env?: Record<string, string> } = {}) =>
      start(args, options).result,
    readProfile: async (profile = 'default') =>
      JSON.parse(await readFile(join(directory, `${profile}.json`), 'utf8')) as {
        platformUrl?: string;
        sessions: Record<string, Session>;
      },
    writeProfile: async (sessions: Session[], profile = 'default') => {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      const [bound] = sessions;
      const keyed = Object.fromEntries(sessions.map((session) => [session.platformUrl, session]));
      const file = { platformUrl: bound?.platformUrl, sessions: keyed };
      await writeFile(join(directory, `${profile}.json`), JSON.stringify(file), { mode: 0o600 });
    },
  };
}

/** A session at one address that is good for an hour. */
export function sessionAt(url: string, changes: Partial<Session> = {}): Session {
  return {
    platformUrl: url,
    businessUrl: url,
    issuer: url,
    clientId: 'andromeda-cli',
    accessToken: 'secret-access',
    refreshToken: 'secret-refresh',
    expiresAt: new Date(Date.now() + 3600_000).toISOString(),
    user: { name: 'Ada', email: 'ada@physics.example' },
    ...changes,
  };
}

export interface Seen {
  method: string;
  url: string;
  headers: IncomingMessage['headers'];
  rawHeaders: string[];
  body: Buffer;
}

/** A server that notes each request and answers as told. */
export async function serve(
  t: TestContext,
  answer: (seen: Seen, response: ServerResponse) => void | Promise<void>,
) {
  const requests: Seen[] = [];
  const server = createServer(async (request, response) => {
    const { method = '', url = '', headers, rawHeaders } = request;
    const seen = { method, url, headers, rawHeaders, body: await buffer(request) };
    requests.push(seen);
    await answer(seen, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests, server };
}

/** Answers with JSON. */
export function json(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
