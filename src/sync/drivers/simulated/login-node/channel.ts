/**
 * One channel of the connection protocol (RFC 4254, section 5): its windows, its order of bytes, EOF and
 * CLOSE. It knows nothing of what runs behind it. Memory is bounded both ways: the other side may send only
 * what `credit` has given back, and `send` returns false when to stop.
 */
import type { Socket } from 'node:net';
import type { Transport } from './transport.ts';

export const receiveWindow = 2 * 1024 * 1024;
export const maxPacket = 32 * 1024;
const sendLimit = 256 * 1024;
const socketLimit = 4 * 1024 * 1024;
const extendedStderr = 1;

export type Output = 'stdout' | 'stderr';

/**
 * What the other side does on the channel. `closed`: it takes and sends nothing more; the handler calls
 * `close`, now or later. It comes again, with false, when the connection is lost before that.
 */
export interface ChannelEvents {
  data(chunk: Buffer): void;
  eof(): void;
  closed(connected: boolean): void;
}

export class Channel {
  readonly remoteId: number;
  events: ChannelEvents | undefined;
  readonly #transport: Transport;
  readonly #socket: Socket;
  readonly #remotePacket: number;
  #sendWindow: number;
  #receiveWindow = receiveWindow;
  #consumed = 0;
  #queue: { output: Output; chunk: Buffer }[] = [];
  #queued = 0;
  #drained: (() => void)[] = [];
  #whenEmpty: (() => void)[] = [];
  #sentEof = false;
  #sentClose = false;
  #gotEof = false;
  #gotClose = false;
  #lost = false;
  readonly #release: () => void;

  /** `release` is called when both sides have closed, or the connection is lost. */
  constructor(
    transport: Transport,
    socket: Socket,
    remote: { id: number; window: number; packet: number },
    release: () => void,
  ) {
    this.#release = release;
    this.#transport = transport;
    this.#socket = socket;
    this.remoteId = remote.id;
    this.#sendWindow = remote.window;
    this.#remotePacket = Math.max(1, Math.min(remote.packet, maxPacket));
  }

  /** Queues output. False: hold further output until `onceDrained` calls. */
  send(output: Output, chunk: Buffer): boolean {
    if (this.#sentEof || this.#sentClose || this.#gotClose) return true;
    this.#queue.push({ output, chunk });
    this.#queued += chunk.length;
    this.pump();
    return this.#queued < sendLimit;
  }

  onceDrained(resume: () => void): void {
    this.#drained.push(resume);
  }

  /** Calls once everything queued so far is sent, or the channel is over. */
  onceEmpty(done: () => void): void {
    if (this.#queue.length === 0) done();
    else this.#whenEmpty.push(done);
  }

  /** Sends what window and socket allow; the connection calls it when either can take more. */
  pump(): void {
    let next = this.#queue[0];
    while (next && this.#sendWindow > 0 && this.#socket.writableLength < socketLimit) {
      const size = Math.min(next.chunk.length, this.#sendWindow, this.#remotePacket);
      const part = next.chunk.subarray(0, size);
      if (next.output === 'stdout') this.#transport.channelData(this.remoteId, part);
      else this.#transport.channelExtData(this.remoteId, part, extendedStderr);
      this.#sendWindow -= size;
      this.#queued -= size;
      next.chunk = next.chunk.subarray(size);
      if (next.chunk.length === 0) this.#queue.shift();
      next = this.#queue[0];
    }
    this.#wake();
  }

  #wake(): void {
    if (this.#queued < sendLimit / 2) for (const resume of this.#drained.splice(0)) resume();
    if (this.#queue.length === 0) for (const done of this.#whenEmpty.splice(0)) done();
  }

  /** Reports `bytes` of received data as used up, so that the other side may send as much again. */
  credit(bytes: number): void {
    this.#consumed += bytes;
    if (this.#consumed < receiveWindow / 4 || this.#sentClose || this.#gotEof) return;
    this.#transport.channelWindowAdjust(this.remoteId, this.#consumed);
    this.#receiveWindow += this.#consumed;
    this.#consumed = 0;
  }

  eof(): void {
    if (this.#sentEof || this.#sentClose) return;
    this.#sentEof = true;
    this.#transport.channelEOF(this.remoteId);
  }

  close(): void {
    if (this.#sentClose) return;
    this.eof();
    this.#sentClose = true;
    this.#transport.channelClose(this.remoteId);
    if (this.#gotClose) this.#release();
  }

  /** An exit status goes out before CLOSE; afterwards it is dropped. */
  reportExit(code: number | null, signal: NodeJS.Signals | null, signalNumber: number): void {
    if (this.#sentClose) return;
    if (signal === null) {
      this.#transport.exitStatus(this.remoteId, code ?? 255);
      return;
    }
    try {
      this.#transport.exitSignal(this.remoteId, signal, false, '');
    } catch {
      this.#transport.exitStatus(this.remoteId, 128 + signalNumber);
    }
  }

  reply(wanted: boolean, success: boolean): void {
    if (!wanted || this.#sentClose) return;
    if (success) this.#transport.channelSuccess(this.remoteId);
    else this.#transport.channelFailure(this.remoteId);
  }

  receiveData(chunk: Buffer): void {
    this.#receiveWindow -= chunk.length;
    if (this.#receiveWindow < 0) throw new RangeError('the client sent more than its window allows');
    if (!this.#gotEof && !this.#sentClose) this.events?.data(chunk);
  }

  receiveWindowAdjust(bytes: number): void {
    this.#sendWindow = Math.min(this.#sendWindow + bytes, 0xffffffff);
    this.pump();
  }

  receiveEof(): void {
    if (this.#gotEof) return;
    this.#gotEof = true;
    this.events?.eof();
  }

  /** The other side closed the channel, or the connection is gone: nothing queued can be delivered any more. */
  end(connected: boolean): void {
    if (this.#lost || (connected && this.#gotClose)) return;
    this.#gotClose = true;
    this.#gotEof = true;
    this.#queue = [];
    this.#queued = 0;
    if (!connected) {
      this.#lost = true;
      this.#sentClose = true;
    }
    if (this.#sentClose) this.#release();
    if (this.events) this.events.closed(connected);
    else this.close();
    this.#wake();
  }
}
