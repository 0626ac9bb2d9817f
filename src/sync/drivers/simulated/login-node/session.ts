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

export interface SessionHost {
  /** The account as it is now, with the shell of now. Throws when there must be no session. */
  context(): Promise<SessionContext>;
  makePipes: MakePipes | undefined;
  sftp: 'system' | 'own';
  /** A session could not be started: for the log. */
  failed(error: unknown): void;
}

export interface Session {
  request(type: string, details: WireReader): boolean;
}

/** Serves a session on a channel that was just opened. */
export function serveSession(channel: Channel, host: SessionHost): Session {
  let terminal: { term: string; stty: string[] } | undefined;
  let size: TerminalSize = { columns: 80, rows: 24 };
  let started = false;
  let running: Running | undefined;
  let gone = false;
  let outputOver = false;
  // The client may send input before the process exists.
  let early: Buffer[] = [];
  let earlyEof = false;
  // The gateway sends a command longer than one message may be in pieces, and the last of them with `exec`.
  let commandParts: Buffer[] = [];

  const give = (process: Running, chunk: Buffer) => process.write(chunk, () => channel.credit(chunk.length));
  channel.events = {
    data: (chunk) => {
      if (running) give(running, chunk);
      else early.push(chunk);
    },
    eof: () => {
      if (running) running.endInput();
      else earlyEof = true;
    },
    closed: (connected) => {
      // A client that has seen the end of all output may close before the process has ended, and still waits
      // for its exit status.
      if (connected && outputOver) return;
      gone = true;
      early = [];
      running?.hangUp();
      channel.close();
    },
  };

  function begin(start: () => Promise<Running>): boolean {
    started = true;
    start()
      .then((process) => {
        running = process;
        if (gone) return process.hangUp();
        for (const chunk of early.splice(0)) give(process, chunk);
        if (earlyEof) process.endInput();
        connectOutputs(channel, process, () => {
          outputOver = true;
        });
      })
      .catch((error: unknown) => {
        host.failed(error);
        channel.send('stderr', Buffer.from('The session could not be started.\r\n'));
        channel.onceEmpty(() => {
          channel.reportExit(255, null, 0);
          channel.close();
        });
      });
    return true;
  }

  function startCommand(command: string | undefined): boolean {
    return begin(async () => {
      const context = await host.context();
      const owner = context.place.kind === 'self' ? undefined : context.account;
      const pty = terminal;
      if (!pty) return runWithPipes(shellProgram(context, command, undefined), host.makePipes, owner);
      return runWithTerminal((path) => shellProgram(context, command, { path, ...pty }), size, owner);
    });
  }

  function takePart(part: Buffer): boolean {
    const size = commandParts.reduce((sum, { length }) => sum + length, part.length);
    if (started || size > longestCommand) return false;
    commandParts.push(Buffer.from(part));
    return true;
  }

  function wholeCommand(last: Buffer): string {
    const whole = Buffer.concat([...commandParts, last]).toString('utf8');
    commandParts = [];
    return whole;
  }

  function startSftp(): boolean {
    return begin(async () => {
      const context = await host.context();
      const owner = context.place.kind === 'self' ? undefined : context.account;
      return runWithPipes(sftpProgram(context, host.sftp), host.makePipes, owner);
    });
  }

  return {
    request(type, details) {
      switch (type) {
        case 'pty-req':
          if (started) return false;
          terminal = { term: termName(details.text()), stty: [] };
          size = readSize(details);
          terminal.stty = sttyArguments(details.bytes());
          return true;
        case 'shell':
          return !started && startCommand(undefined);
        case 'exec':
          return !started && startCommand(wholeCommand(details.bytes()));
        case 'exec-part@andromeda':
          return takePart(details.bytes());
        case 'subsystem':
          return !started && details.text() === 'sftp' && startSftp();
        case 'window-change':
          if (!terminal) return false;
          size = readSize(details);
          running?.resize(size.columns, size.rows);
          return true;
        case 'signal':
          return sendSignal(running, details.text());
        case 'eow@openssh.com':
          // Nobody reads our output any more: whoever writes it shall notice.
          running?.outputs[0]?.stream.destroy();
          return true;
        default:
          // Environment variables, agent and X11 forwarding are refused.
          return false;
      }
    },
  };
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
