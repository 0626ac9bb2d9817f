/**
 * One channel (RFC 4254, section 5). ssh2's own mix up output and errors when a window fills, and end with the output: here the exit
 * status may come after it.
 */
import { constants } from 'node:os';
import type { Readable, Writable } from 'node:stream';
import { type Field, message, SSH, WireError, type WireReader } from '../../../lib/ssh/wire.ts';

export type Output = 'stdout' | 'stderr';

/** What the client may send before more is taken. */
const ownWindow = 2 * 1024 * 1024;
const longestPacket = 32 * 1024;
/** Signals with a name in RFC 4254. */
const named = 'ABRT ALRM FPE HUP ILL INT KILL PIPE QUIT SEGV TERM USR1 USR2'.split(' ');

export class Channel {
  /** Does what the client asks for; false is a refusal. */
  onRequest: (type: string, details: WireReader) => boolean = () => false;
  /** Called once, when the client has closed it or is gone. */
  onClosed: (isConnected: boolean) => void = () => this.close();
  readonly #send: (type: number, ...fields: Field[]) => void;
  readonly #release: () => void;
  /** What the client still takes, and in one message. */
  #window: number;
  readonly #packet: number;
  #onWindow = () => {};
  /** What the client may still send, and what was taken of it since the last adjustment. */
  #granted = ownWindow;
  #taken = 0;
  #input: Writable | undefined;
  #early: Buffer[] = [];
  #isInputOver = false;
  #sent: Promise<void> = Promise.resolve();
  #isGone = false;
  #isClosed = false;

  /** `release` is called when neither side has more to say. */
  constructor(
    its: { local: number; remote: { uint32: number }; window: number; packet: number },
    send: (payload: Buffer) => void,
    release: () => void,
  ) {
    const { local, remote } = its;
    this.#window = its.window;
    this.#packet = Math.min(its.packet, longestPacket);
    this.#release = release;
    this.#send = (type, ...fields) => {
      if (!this.#isClosed) send(message(type, remote, ...fields));
    };
    const own = [{ uint32: ownWindow }, { uint32: longestPacket }];
    this.#send(SSH.CHANNEL_OPEN_CONFIRMATION, { uint32: local }, ...own);
  }

  /** Takes a message of the client, behind the channel's number. */
  receive(type: number, details: WireReader): void {
    if (type === SSH.CHANNEL_DATA) this.#onData(details.bytes());
    else if (type === SSH.CHANNEL_CLOSE) this.closed(true);
    else if (type === SSH.CHANNEL_WINDOW_ADJUST) {
      this.#window += details.uint32();
      this.#onWindow();
    } else if (type === SSH.CHANNEL_EOF) {
      this.#isInputOver = true;
      this.#input?.end();
    } else if (type === SSH.CHANNEL_REQUEST) {
      const request = details.text();
      const isAnswered = details.bool();
      const isDone = this.onRequest(request, details);
      if (isAnswered) this.#send(isDone ? SSH.CHANNEL_SUCCESS : SSH.CHANNEL_FAILURE);
    }
  }

  /** The client has closed it, or is gone. */
  closed(isConnected: boolean): void {
    if (this.#isGone) return;
    this.#isGone = true;
    this.#onWindow();
    this.onClosed(isConnected);
    if (this.#isClosed) this.#release();
  }

  /** What the client sends goes there, until its end; what is not taken is lost. */
  pipeTo(input: Writable): void {
    this.#input = input;
    input.on('error', () => undefined);
    for (const data of this.#early.splice(0)) this.#give(input, data);
    if (this.#isInputOver) input.end();
  }

  #onData(data: Buffer): void {
    this.#granted -= data.length;
    if (this.#granted < 0) throw new WireError('more than the window');
    if (this.#input) this.#give(this.#input, data);
    else this.#early.push(data);
  }

  #give(input: Writable, data: Buffer): void {
    input.write(data, () => {
      this.#taken += data.length;
      if (this.#taken < ownWindow / 2) return;
      this.#granted += this.#taken;
      this.#send(SSH.CHANNEL_WINDOW_ADJUST, { uint32: this.#taken });
      this.#taken = 0;
    });
  }

  /** Sends all of a stream, held back while the client does not take it; resolves at its end, or when it breaks off. */
  async sendAll(output: Output, source: Readable): Promise<void> {
    try {
      for await (const chunk of source) {
        await this.send(output, chunk);
        if (this.#isGone) return;
      }
    } catch {
      // Linux ends a terminal whose last process is gone with EIO, after all of its output.
    }
  }

  send(output: Output, data: Buffer): Promise<void> {
    this.#sent = this.#sent.then(() => this.#put(output, data));
    return this.#sent;
  }

  async #put(output: Output, data: Buffer): Promise<void> {
    for (let at = 0; at < data.length && !this.#isGone; ) {
      const part = data.subarray(at, at + Math.min(this.#window, this.#packet));
      at += part.length;
      this.#window -= part.length;
      if (part.length === 0) {
        const { promise, resolve } = Promise.withResolvers<void>();
        this.#onWindow = resolve;
        await promise;
      } else if (output === 'stdout') this.#send(SSH.CHANNEL_DATA, part);
      else this.#send(SSH.CHANNEL_EXTENDED_DATA, { uint32: 1 }, part);
    }
  }

  eof(): void {
    this.#send(SSH.CHANNEL_EOF);
  }

  close(): void {
    if (this.#isClosed) return;
    this.#send(SSH.CHANNEL_CLOSE);
    this.#isClosed = true;
    if (this.#isGone) this.#release();
  }

  /** Goes out before the end of the channel; afterwards it is dropped. */
  reportExit({ code, signal }: { code: number | null; signal: NodeJS.Signals | null }): void {
    const name = signal?.slice(3) ?? '';
    const status = signal === null ? (code ?? 255) : 128 + constants.signals[signal];
    if (named.includes(name)) this.#send(SSH.CHANNEL_REQUEST, 'exit-signal', false, name, false, '', '');
    else this.#send(SSH.CHANNEL_REQUEST, 'exit-status', false, { uint32: status });
  }
}
