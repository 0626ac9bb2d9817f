/**
 * A channel of ssh2's with what its own lacks: output and errors are sent one after the other (it mixes them up when a window
 * fills), the end of output is not the end of the channel, and the exit status may come after both.
 */
import { constants } from 'node:os';
import type { Duplex, Readable, Writable } from 'node:stream';

export type Output = 'stdout' | 'stderr';

/** Methods of ssh2's protocol object, each of which writes one message. */
export interface Protocol {
  channelSuccess(remote: number): void;
  channelFailure(remote: number): void;
  exitStatus(remote: number, status: number): void;
  /** Throws when the signal has no name in RFC 4254. */
  exitSignal(remote: number, signal: string, coreDumped: boolean, message: string): void;
}

type Send = (data: Buffer, encoding: BufferEncoding, done: () => void) => void;

export interface Inside extends Duplex {
  incoming: { id: number };
  outgoing: { id: number; state: string };
  _write: Send;
  stderr: { _write: Send };
  _chunk: unknown;
  _chunkcb: unknown;
  _chunkErr: unknown;
  _chunkcbErr: unknown;
  eof(): void;
  close(): void;
}

export class Channel {
  /** Called once, when the client has closed it or is gone; it may put off what that brings until it is done. */
  onClosed: (isConnected: boolean, proceed: () => void) => void = (_, proceed) => proceed();
  readonly #stream: Inside;
  readonly #protocol: Protocol;
  readonly #release: () => void;
  #sent: Promise<void> = Promise.resolve();
  #giveUp = () => {};
  #isOver = false;

  constructor(stream: Inside, protocol: Protocol, release: () => void) {
    this.#stream = stream;
    this.#protocol = protocol;
    this.#release = release;
    stream.on('error', () => undefined);
  }

  get id(): number {
    return this.#stream.incoming.id;
  }

  /** What the client sends goes there, until its end; what is not taken is lost. */
  pipeTo(input: Writable): void {
    input.on('error', () => undefined);
    input.on('close', () => this.#stream.unpipe(input).resume());
    this.#stream.pipe(input);
  }

  /** Sends all of a stream, held back while the client does not take it; resolves at its end, or when it breaks off. */
  async sendAll(output: Output, source: Readable): Promise<void> {
    try {
      for await (const chunk of source) {
        await this.send(output, chunk);
        if (this.#isOver) return;
      }
    } catch {
      // Linux ends a terminal whose last process is gone with EIO, after all of its output.
    }
  }

  send(output: Output, chunk: Buffer): Promise<void> {
    this.#sent = this.#sent.then(() => this.#put(output, chunk));
    return this.#sent;
  }

  #put(output: Output, chunk: Buffer): Promise<void> {
    const stream = this.#stream;
    return new Promise((resolve) => {
      // ssh2 never calls back where the channel is not open.
      if (this.#isOver || stream.outgoing.state !== 'open') return resolve();
      this.#giveUp = resolve;
      const done = () => {
        // It would send them once more when the other output waits.
        Object.assign(stream, {
          _chunk: undefined,
          _chunkcb: undefined,
          _chunkErr: undefined,
          _chunkcbErr: undefined,
        });
        resolve();
      };
      if (output === 'stdout') stream._write(chunk, 'latin1', done);
      else stream.stderr._write(chunk, 'latin1', done);
    });
  }

  eof(): void {
    this.#stream.eof();
  }

  close(): void {
    this.#stream.close();
  }

  reply(isDone: boolean): void {
    const { id, state } = this.#stream.outgoing;
    if (state !== 'open' && state !== 'eof') return;
    if (isDone) this.#protocol.channelSuccess(id);
    else this.#protocol.channelFailure(id);
  }

  /** Goes out before the end of the channel; afterwards it is dropped. */
  reportExit({ code, signal }: { code: number | null; signal: NodeJS.Signals | null }): void {
    const { id, state } = this.#stream.outgoing;
    if (state !== 'open' && state !== 'eof') return;
    try {
      if (signal === null) this.#protocol.exitStatus(id, code ?? 255);
      else this.#protocol.exitSignal(id, signal, false, '');
    } catch {
      this.#protocol.exitStatus(id, signal === null ? 255 : 128 + constants.signals[signal]);
    }
  }

  /** The client has closed it, or is gone; `proceed` has ssh2 answer that. */
  closed(isConnected: boolean, proceed: () => void = () => {}): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#giveUp();
    this.onClosed(isConnected, () => {
      this.#release();
      proceed();
    });
  }
}
