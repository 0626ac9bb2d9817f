/** Commands by function against small servers, with a state directory of their own. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import type { Session } from '../../src/cli/session/local-state.ts';
import { type CommandOptions, type Result, startCommand } from '../support/command.ts';
import { finished } from '../support/heard.ts';
import { limit } from '../support/limit.ts';
import { listening } from '../support/ports.ts';
import { program } from '../support/program.ts';

export type { Result };

/** One machine's worth of state; `run` runs commands in it, by function. */
export async function createMachine(t: TestContext) {
  const home = await mkdtemp(join(tmpdir(), 'andromeda-cli-'));
  t.after(() => rm(home, { recursive: true, force: true }));
  const directory = join(home, 'andromeda');
  const own = {
    PATH: process.env.PATH,
    HOME: home,
    XDG_STATE_HOME: home,
    // Not the credential store of whoever runs the tests.
    ANDROMEDA_CREDENTIAL_STORE: 'file',
  };
  const start = (args: string[], { env, ...options }: CommandOptions = {}) =>
    startCommand(args, { ...options, env: { ...own, ...env } });
  return {
    directory,
    start,
    /** At a terminal: what a person sees, and types. */
    atTerminal: (args: string[], env: CommandOptions['env'] = {}) =>
      start(args, { env: { TERM: 'xterm', ...env }, terminal: true }),
    /** The program as a process, for what a process alone can show. */
    runProcess: (args: string[], env: Record<string, string> = {}) => spawnProgram(args, { ...own, ...env }),
    run: (args: string[], options?: CommandOptions) => start(args, options).result,
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

async function spawnProgram(args: string[], env: NodeJS.ProcessEnv) {
  const child = spawn(program, args, { timeout: limit(120_000), stdio: ['ignore', 'pipe', 'pipe'], env });
  const { status, out: stdout, err: stderr } = await finished(child);
  return { status, stdout, stderr };
}

type Said = Pick<Result, 'stdout' | 'stderr'> & { status: number | null };

/** Compares how a command ended, and what it wrote. */
export async function says(running: Promise<Said>, status: number, stderr: string, stdout?: string) {
  const ended = await running;
  assert.deepEqual([ended.stderr, ended.status], [stderr, status]);
  if (stdout !== undefined) assert.equal(ended.stdout, stdout);
}

/** A session at one address that is good for an hour. */
export function sessionAt(url: string, changes: Partial<Session> = {}): Session {
  return {
    platformUrl: url,
    businessUrl: url,
    issuer: url,
    clientId: 'andromeda-cli',
    accessToken: 'secret-access',
    resource: url,
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
  const port = await listening(server);
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${port}`, requests, server };
}

/** Answers with JSON. */
export function json(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
