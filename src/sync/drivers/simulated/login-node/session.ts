/** One session channel: pty-req, then shell, exec or sftp; then window-change and signal while it runs. */
import { constants } from 'node:os';
import type { WireReader } from '../../../../ssh/wire.ts';
import type { Channel } from './channel.ts';
import { type SessionContext, sftpProgram, shellProgram } from './command.ts';
import type { MakePipes } from './pipes.ts';
import { type Running, runWithPipes } from './running.ts';
import { runWithTerminal, type TerminalSize } from './running-pty.ts';
import { sttyArguments } from './terminal-modes.ts';

/** The kernel's limit for one argument, with its NUL. */
const longestCommand = 131_072;

type Owner = { uid: number; gid: number };

export interface SessionHost {
  /** The account as it is now, with the shell of now. Throws when there must be no session. */
  context(): Promise<SessionContext>;
  makePipes: MakePipes | undefined;
  sftp: 'system' | 'own';
  /** A session could not be started: for the log. */
  failed(error: unknown): void;
}

/** Serves one channel that was just opened. */
export class Session {
  readonly #channel: Channel;
  readonly #host: SessionHost;
  #terminal: { term: string; stty: string[] } | undefined;
  #size: TerminalSize = { columns: 80, rows: 24 };
  #started = false;
  #running: Running | undefined;
  #gone = false;
  #outputOver = false;
  // The client may send input before the process exists.
  #early: Buffer[] = [];
  #earlyEof = false;
  // The gateway sends a command longer than one message may be in pieces, and the last of them with `exec`.
  #commandParts: Buffer[] = [];

  constructor(channel: Channel, host: SessionHost) {
    this.#channel = channel;
    this.#host = host;
    channel.events = {
      data: (chunk) => {
        if (this.#running) this.#write(this.#running, chunk);
        else this.#early.push(chunk);
      },
      eof: () => {
        if (this.#running) this.#running.endInput();
        else this.#earlyEof = true;
      },
      closed: (connected) => this.#closed(connected),
    };
  }

  /** Does what the client asks for; false is a refusal. */
  request(type: string, details: WireReader): boolean {
    switch (type) {
      case 'pty-req':
        return !this.#started && this.#setTerminal(details);
      case 'shell':
        return !this.#started && this.#startCommand(undefined);
      case 'exec':
        return !this.#started && this.#startCommand(this.#wholeCommand(details.bytes()));
      case 'exec-part@andromeda':
        return !this.#started && this.#addCommandPart(details.bytes());
      case 'subsystem':
        return !this.#started && details.text() === 'sftp' && this.#startSftp();
      case 'window-change':
        if (!this.#terminal) return false;
        this.#size = readSize(details);
        this.#running?.resize(this.#size.columns, this.#size.rows);
        return true;
      case 'signal':
        return sendSignal(this.#running, details.text());
      case 'eow@openssh.com':
        // Nobody reads the output any more: the program that writes it must notice (SIGPIPE).
        this.#running?.outputs[0]?.stream.destroy();
        return true;
      default:
        // Environment variables, agent and X11 forwarding are refused.
        return false;
    }
  }

  #setTerminal(details: WireReader): boolean {
    const term = termName(details.text());
    this.#size = readSize(details);
    this.#terminal = { term, stty: sttyArguments(details.bytes()) };
    return true;
  }

  #addCommandPart(part: Buffer): boolean {
    const size = this.#commandParts.reduce((sum, { length }) => sum + length, part.length);
    if (size > longestCommand) return false;
    this.#commandParts.push(Buffer.from(part));
    return true;
  }

  #wholeCommand(last: Buffer): string {
    return Buffer.concat([...this.#commandParts.splice(0), last]).toString('utf8');
  }

  #startCommand(command: string | undefined): boolean {
    return this.#start(async (context, owner) => {
      const pty = this.#terminal;
      if (!pty) return runWithPipes(shellProgram(context, command, undefined), this.#host.makePipes, owner);
      return runWithTerminal((path) => shellProgram(context, command, { path, ...pty }), this.#size, owner);
    });
  }

  #startSftp(): boolean {
    const { sftp, makePipes } = this.#host;
    return this.#start((context, owner) => runWithPipes(sftpProgram(context, sftp), makePipes, owner));
  }

  #start(run: (context: SessionContext, owner: Owner | undefined) => Promise<Running>): boolean {
    this.#started = true;
    this.#host
      .context()
      .then((context) => run(context, context.sandbox.kind === 'self' ? undefined : context.account))
      .then((process) => this.#connect(process))
      .catch((error: unknown) => this.#fail(error));
    return true;
  }

  #connect(process: Running): void {
    this.#running = process;
    if (this.#gone) {
      process.hangUp();
      return;
    }
    for (const chunk of this.#early.splice(0)) this.#write(process, chunk);
    if (this.#earlyEof) process.endInput();
    connectOutputs(this.#channel, process, () => {
      this.#outputOver = true;
    });
  }

  #write(process: Running, chunk: Buffer): void {
    process.write(chunk, () => this.#channel.credit(chunk.length));
  }

  #fail(error: unknown): void {
    this.#host.failed(error);
    this.#channel.send('stderr', Buffer.from('The session could not be started.\r\n'));
    this.#channel.onceEmpty(() => {
      this.#channel.reportExit(255, null, 0);
      this.#channel.close();
    });
  }

  #closed(connected: boolean): void {
    // A client that has seen the end of all output may close before the process has ended, and still waits
    // for its exit status.
    if (connected && this.#outputOver) return;
    this.#gone = true;
    this.#early = [];
    this.#running?.hangUp();
    this.#channel.close();
  }
}

/** Sends the output, holds the process while the client does not take it, and closes after the last byte. */
function connectOutputs(channel: Channel, process: Running, over: () => void): void {
  const ends = process.outputs.map(({ name, stream }) => {
    stream.on('data', (chunk: Buffer) => {
      if (channel.send(name, chunk)) return;
      stream.pause();
      channel.onceDrained(() => stream.resume());
    });
    return new Promise<void>((resolve) => {
      stream.once('close', resolve);
      if (stream.closed) resolve();
    });
  });
  const allSent = Promise.all(ends).then(() => {
    channel.onceEmpty(() => {
      over();
      channel.eof();
    });
  });
  void Promise.all([process.exited, allSent]).then(([{ code, signal }]) => {
    channel.onceEmpty(() => {
      channel.reportExit(code, signal, signal ? constants.signals[signal] : 0);
      channel.close();
      // A client that never ended its input leaves our end of that pipe open.
      process.hangUp();
    });
  });
}

function readSize(details: WireReader): TerminalSize {
  const side = (value: number, standard: number) => (value >= 1 && value <= 0xffff ? value : standard);
  const size = { columns: side(details.uint32(), 80), rows: side(details.uint32(), 24) };
  // The size in pixels follows; nothing here can pass it on.
  details.uint32();
  details.uint32();
  return size;
}

const termName = (name: string) => (/^[\w.+-]{1,64}$/.test(name) ? name : 'dumb');

function sendSignal(running: Running | undefined, name: string): boolean {
  const signal = `SIG${name}`;
  if (!running || !(signal in constants.signals)) return false;
  running.signal(signal as NodeJS.Signals);
  return true;
}
