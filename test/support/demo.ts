/** The demonstration as `npm start` runs it, in a process of its own, and what its page says. */
import { type ChildProcess, spawn } from 'node:child_process';
import { connect } from 'node:net';
import { messageOf } from '../../src/lib/error-message.ts';
import { heard } from './heard.ts';
import { limit } from './limit.ts';

export interface Demo extends AsyncDisposable {
  process: ChildProcess;
  /** Everything it printed so far. */
  output(): string;
  /** The page as text. */
  page: string;
  /** A command of the page that contains `part`. */
  command(part: string): string;
  /** The password that the page gives an account. */
  password(email: string): string;
  exit(signal: NodeJS.Signals): Promise<{ code: number | null; signal: string | null; ms: number }>;
}

/** Starts it with its data in `dataDir` and waits for the page. Its ports are one demonstration's at a time on a machine. */
export async function startDemo(dataDir: string): Promise<Demo> {
  const deadline = performance.now() + limit(120_000);
  for (;;) {
    try {
      // An attempt costs a second of the processor, a question costs nothing.
      if (await answers(8080)) throw new Error('port 8080 is in use by another program');
      return await startOnce(dataDir);
    } catch (error) {
      const isTaken = /is in use by another program/.test(messageOf(error));
      if (!isTaken || performance.now() > deadline) throw error;
      await new Promise((done) => setTimeout(done, 500));
    }
  }
}

function answers(port: number): Promise<boolean> {
  return new Promise((done) => {
    const socket = connect(port, '127.0.0.1', () => done(true)).on('error', () => done(false));
    socket.on('connect', () => socket.destroy());
  });
}

async function startOnce(dataDir: string): Promise<Demo> {
  const child = spawn('npm', ['start', '--silent', '--', '--data', dataDir], {
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const output = heard(child.stdout, child.stderr);
  const exited = new Promise<{ code: number | null; signal: string | null }>((done) =>
    child.on('exit', (code, signal) => done({ code, signal })),
  );
  const deadline = performance.now() + limit(60_000);
  while (!output().includes('/revoke\n')) {
    if (performance.now() > deadline || child.exitCode !== null)
      throw new Error(`the demonstration said: ${output()}`);
    await new Promise((done) => setTimeout(done, 20));
  }
  const page = output();
  return {
    process: child,
    output,
    page,
    command(part) {
      const line = page.split('\n').find((one) => /^ {5}(npx|ssh) /.test(one) && one.includes(part));
      if (!line) throw new Error(`the page has no command with ${part}`);
      return line.trim();
    },
    password(email) {
      return new RegExp(`${email} +\\w+ +password (\\S+)`).exec(page)?.[1] ?? '';
    },
    async exit(signal) {
      const started = performance.now();
      // The whole group, as Ctrl-C in a terminal does.
      if (child.exitCode === null && child.pid) process.kill(-child.pid, signal);
      return { ...(await exited), ms: performance.now() - started };
    },
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null && child.signalCode === null && child.pid)
        process.kill(-child.pid, 'SIGKILL');
      await exited;
    },
  };
}
