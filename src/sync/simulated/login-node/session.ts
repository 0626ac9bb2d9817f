/** One session channel: pty-req, then shell, exec or sftp; then window-change and signal while it runs. */
import { spawnSync } from 'node:child_process';
import { constants } from 'node:os';
import { WireReader } from '../../../lib/ssh/wire.ts';
import type { Channel } from './channel.ts';
import { type SessionContext, sftpProgram, shellProgram } from './command.ts';
import { type Running, runWithPipes, runWithTerminal } from './running.ts';

/** The kernel's limit for one argument (MAX_ARG_STRLEN), including its NUL. */
const longestCommand = 131_072;

export class Session {
  readonly #channel: Channel;
  /** Returns the account's present context, with its present shell. Throws when there must be no session. */
  readonly #context: () => SessionContext;
  readonly #onFailed: (error: unknown) => void;
  #terminal: { term: string; stty: string[] } | undefined;
  #size = { columns: 80, rows: 24 };
  #isStarted = false;
  #running: Running | undefined;
  /** All output was sent, but not the exit status: a client that closes the channel now still waits for the status. */
  #isSent = false;
  /** A command longer than one SSH message: the gateway sends it in parts, the last one with `exec`. */
  #commandParts: Buffer[] = [];

  constructor(channel: Channel, context: () => SessionContext, onFailed: (error: unknown) => void) {
    this.#channel = channel;
    this.#context = context;
    this.#onFailed = onFailed;
    channel.onRequest = (type, details) => this.#request(type, details);
    channel.onClosed = (isConnected) => {
      if (isConnected && this.#isSent) return;
      this.#running?.hangUp();
      channel.close();
    };
  }

  #request(type: string, details: WireReader): boolean {
    switch (type) {
      case 'pty-req':
        return !this.#isStarted && this.#setTerminal(details);
      case 'shell':
        return this.#start(() => this.#run(undefined));
      case 'exec':
        return this.#start(() => this.#run(this.#wholeCommand(details.bytes())));
      case 'exec-part@andromeda':
        return !this.#isStarted && this.#addCommandPart(details.bytes());
      case 'subsystem':
        return details.text() === 'sftp' && this.#start(() => runWithPipes(sftpProgram(this.#context())));
      case 'window-change':
        if (!this.#terminal) return false;
        this.#size = readSize(details);
        this.#running?.resize(this.#size.columns, this.#size.rows);
        return true;
      case 'signal':
        return sendSignal(this.#running, details.text());
      case 'eow@openssh.com':
        // The client no longer reads the output: the writing program must get SIGPIPE.
        this.#running?.outputs[0]?.stream.destroy();
        return true;
      default:
        // Environment variables, agent and X11 forwarding are refused.
        return false;
    }
  }

  #setTerminal(details: WireReader): boolean {
    const name = details.text();
    const term = /^[\w.+-]{1,64}$/.test(name) ? name : 'dumb';
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

  #run(command: string | undefined): Running {
    const context = this.#context();
    const pty = this.#terminal;
    if (!pty) return runWithPipes(shellProgram(context, command));
    const owner = context.sandbox === 'self' ? undefined : context.account;
    const program = (path: string) => {
      // Before the program starts, so that typed-ahead input is echoed, or not, as the client wants.
      spawnSync('stty', ['-F', path, ...pty.stty], { stdio: 'ignore' });
      return shellProgram(context, command, { path, term: pty.term });
    };
    return runWithTerminal(program, this.#size, owner);
  }

  #start(run: () => Running): boolean {
    if (this.#isStarted) return false;
    this.#isStarted = true;
    // After the reply to the request, which must be sent first.
    queueMicrotask(() => void this.#serve(run));
    return true;
  }

  async #serve(run: () => Running): Promise<void> {
    const channel = this.#channel;
    try {
      const running = run();
      this.#running = running;
      channel.pipeTo(running.input);
      await Promise.all(running.outputs.map(({ name, stream }) => channel.sendAll(name, stream)));
      this.#isSent = true;
      channel.eof();
      channel.reportExit(await running.exited);
      // If the client never ended its input, our end of the pipe is still open.
      running.hangUp();
    } catch (error) {
      this.#onFailed(error);
      await channel.send('stderr', Buffer.from('The session could not be started.\r\n'));
      channel.reportExit({ code: 255, signal: null });
    }
    channel.close();
  }
}

function readSize(details: WireReader): { columns: number; rows: number } {
  const side = (value: number, standard: number) => (value >= 1 && value <= 0xffff ? value : standard);
  const size = { columns: side(details.uint32(), 80), rows: side(details.uint32(), 24) };
  // The size in pixels follows, which is not used.
  details.uint32();
  details.uint32();
  return size;
}

function sendSignal(running: Running | undefined, name: string): boolean {
  const signal = `SIG${name}`;
  if (!running || !(signal in constants.signals)) return false;
  running.signal(signal as NodeJS.Signals);
  return true;
}

/** stty names by opcode; `-` where stty has none. */
const characters =
  ' intr quit erase kill eof eol eol2 start stop susp - rprnt werase lnext - - - discard'.split(' ');
const firstFlag = 30;
const flags = (
  'ignpar parmrk inpck istrip inlcr igncr icrnl iuclc ixon ixany ixoff imaxbel iutf8 - - - - - - - ' +
  'isig icanon xcase echo echoe echok echonl noflsh tostop iexten echoctl echoke - - - - - - - - ' +
  'opost olcuc onlcr ocrnl onocr onlret'
).split(' ');

const noCharacter = 255;
const firstWithoutArgument = 160;

/** Converts the terminal modes of pty-req (RFC 4254, section 8) to arguments for one call of stty. */
export function sttyArguments(modes: Buffer): string[] {
  const reader = new WireReader(modes);
  const settings: string[] = [];
  // After an opcode of 160 or more the next one cannot be found: the RFC says to stop there.
  while (reader.left >= 5) {
    const opcode = reader.byte();
    if (opcode === 0 || opcode >= firstWithoutArgument) break;
    const value = reader.uint32();
    const [character, flag] = [characters[opcode], flags[opcode - firstFlag]].map((word) =>
      word?.replace('-', ''),
    );
    const notation = character && controlNotation(value);
    if (character && notation) settings.push(character, notation);
    if (flag) settings.push(value ? flag : `-${flag}`);
  }
  return settings;
}

/** Returns `^C`, not a number, because stty reads a one-digit number as that character. */
function controlNotation(code: number): string | undefined {
  if (code === noCharacter) return '^-';
  if (code === 127) return '^?';
  if (code < 32) return `^${String.fromCharCode(code + 64)}`;
  return code < 127 ? String.fromCharCode(code) : undefined;
}
