/**
 * One SSH channel (RFC 4254, section 5). Replaces ssh2's own channels, which mix up stdout and stderr when a window fills,
 * and close with the output: here the exit status may come after it.
 */
import { constants } from 'node:os';
import type { Readable, Writable } from 'node:stream';
import { type Field, message, SSH, WireError, type WireReader } from '../../../lib/ssh/wire.ts';

export type Output = 'stdout' | 'stderr';

/** Window: bytes that the client may send before an adjustment. */
const ownWindow = 2 * 1024 * 1024;
const longestPacket = 32 * 1024;
/** Signal names of RFC 4254. */
const named = 'ABRT ALRM FPE HUP ILL INT KILL PIPE QUIT SEGV TERM USR1 USR2'.split(' ');

export class Channel {
  /** Handles a channel request; false refuses it. */
  onRequest: (type: string, details: WireReader) => boolean = () => false;
  /** Called once, when the client has closed the channel or is disconnected. */
  onClosed: (isConnected: boolean) => void = () => this.close();
  readonly #send: (type: number, ...fields: Field[]) => void;
  readonly #release: () => void;
  /** The client's window, and below it the largest packet that it accepts. */
  #window: number;
  readonly #packet: number;
  #onWindow = () => {};
  /** Remaining bytes that the client may send, and bytes consumed since the last window adjustment. */
  #granted = ownWindow;
  #taken = 0;
  #input: Writable | undefined;
  #early: Buffer[] = [];
  #isInputOver = false;
  #sent: Promise<void> = Promise.resolve();
  #isGone = false;
  #isClosed = false;

  /** `release` is called when both sides have closed the channel. */
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

  /** Handles a message of the client; `details` begins after the channel number. */
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

  /** Ends the channel once the client has closed it (`isConnected`) or is disconnected. */
  closed(isConnected: boolean): void {
    if (this.#isGone) return;
    this.#isGone = true;
    this.#onWindow();
    this.onClosed(isConnected);
    if (this.#isClosed) this.#release();
  }

  /** Writes the client's data to `input`, until its end. Data that `input` does not accept is lost. */
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

  /** Sends a whole stream, paused while the client's window is full; resolves when the stream ends or fails. */
  async sendAll(output: Output, source: Readable): Promise<void> {
    try {
      for await (const chunk of source) {
        await this.send(output, chunk);
        if (this.#isGone) return;
      }
    } catch {
      // Linux ends a terminal whose last process has exited with EIO, after all of its output.
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

  /** Sends the exit status or signal; dropped once the channel is closed. */
  reportExit({ code, signal }: { code: number | null; signal: NodeJS.Signals | null }): void {
    const name = signal?.slice(3) ?? '';
    const status = signal === null ? (code ?? 255) : 128 + constants.signals[signal];
    if (named.includes(name)) this.#send(SSH.CHANNEL_REQUEST, 'exit-signal', false, name, false, '', '');
    else this.#send(SSH.CHANNEL_REQUEST, 'exit-status', false, { uint32: status });
  }
}
