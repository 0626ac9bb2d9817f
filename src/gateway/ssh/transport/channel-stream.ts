/**
 * A stream within an SSH connection, which a second SSH connection runs over: the standard input and output of one command
 * (RFC 4254, section 5), or a TCP connection that the other side makes (section 7.2). It owns its `transport`: that
 * connection carries no other channel.
 */
import { Duplex } from 'node:stream';
import { message, OPEN_FAILURE, SSH, WireError, WireReader } from '../../../lib/ssh/wire.ts';
import { openFailure, requestFailure } from '../messages.ts';
import type { Barrier } from './barrier.ts';
import { toKeep } from './memory.ts';
import type { Transport } from './transport.ts';

/** Receive window: bytes that the other side may send before they are read; OpenSSH's own size. */
const windowBytes = 2 * 1024 * 1024;
const packetBytes = 32 * 1024;
/** Limit on output of the account's start-up files before the SSH version line. All of it is searched again with each message. */
const mostPrinted = 16 * 1024;
/** Our number of the only channel. */
const ownChannel = 0;

export interface ChannelOptions {
  /** A connection after its authentication. */
  transport: Transport;
  barrier: Barrier;
  /** A command that the account's shell runs, or the address that the other side connects to. */
  to: { command: string; onError(text: string): void } | { host: string; port: number };
}

/**
 * Ends when the command has ended and its standard error is read; a refused command ends it at once. A TCP connection emits
 * `connect` once the other side has made it, or is destroyed with the reason why not.
 */
export class ChannelStream extends Duplex {
  /** A transport reads this of its socket. */
  readonly connecting = false;
  readonly #transport: Transport;
  readonly #to: ChannelOptions['to'];
  #other = 0;
  #window = 0;
  #mostInPacket = packetBytes;
  #isOpen = false;
  #unread = 0;
  /** Bytes that a command printed before the version line was complete; undefined afterwards. */
  #ahead: Buffer | undefined;
  #waiting: { bytes: Buffer; done: () => void } | undefined;

  constructor({ transport, barrier, to }: ChannelOptions) {
    super({ allowHalfOpen: true, emitClose: true, highWaterMark: 256 * 1024 });
    this.#transport = transport;
    this.#to = to;
    if ('command' in to) this.#ahead = Buffer.alloc(0);
    transport.onMessage = (payload) => this.#onMessage(payload);
    transport.onDrained = barrier.guard(() => this.#send());
    transport.onEnd = barrier.guard(() => this.#end());
    const size = [{ uint32: windowBytes }, { uint32: packetBytes }] as const;
    const number = { uint32: ownChannel };
    if ('command' in to) transport.send(message(SSH.CHANNEL_OPEN, 'session', number, ...size));
    else {
      const ends = [to.host, { uint32: to.port }, '127.0.0.1', { uint32: 0 }] as const;
      transport.send(message(SSH.CHANNEL_OPEN, 'direct-tcpip', number, ...size, ...ends));
    }
  }

  /** A transport calls this so that bytes go out at once; these always do. */
  setNoDelay(_on: boolean): this {
    return this;
  }

  /** As of a socket: all that was written goes out first. */
  destroySoon(): void {
    this.end(() => this.destroy());
  }

  override _write(bytes: Buffer, _encoding: string, done: () => void): void {
    this.#waiting = { bytes, done };
    this.#send();
  }

  override _final(done: () => void): void {
    this.#sendOwn(SSH.CHANNEL_EOF);
    done();
  }

  override _read(): void {
    if (this.#unread < windowBytes / 4 || !this.#isOpen) return;
    const to = { uint32: this.#other };
    this.#transport.send(message(SSH.CHANNEL_WINDOW_ADJUST, to, { uint32: this.#unread }));
    this.#unread = 0;
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#sendOwn(SSH.CHANNEL_CLOSE);
    this.#isOpen = false;
    done(error);
  }

  #sendOwn(type: number): void {
    if (this.#isOpen) this.#transport.send(message(type, { uint32: this.#other }));
  }

  /** Sends as much of the pending bytes as both the window and the connection take. */
  #send(): void {
    while (this.#waiting && this.#isOpen && this.#window > 0 && !this.#transport.full) {
      const { bytes, done } = this.#waiting;
      const piece = bytes.subarray(0, Math.min(this.#window, this.#mostInPacket));
      this.#window -= piece.length;
      this.#transport.send(message(SSH.CHANNEL_DATA, { uint32: this.#other }, piece));
      const rest = bytes.subarray(piece.length);
      this.#waiting = rest.length > 0 ? { bytes: rest, done } : undefined;
      if (rest.length === 0) done();
    }
  }

  #onMessage(payload: Buffer) {
    const type = payload[0] ?? 0;
    const fields = new WireReader(payload, 1);
    if (type < SSH.GLOBAL_REQUEST || type === SSH.REQUEST_SUCCESS || type === SSH.REQUEST_FAILURE) return;
    if (type === SSH.GLOBAL_REQUEST) return this.#onGlobalRequest(fields);
    if (type === SSH.CHANNEL_OPEN) return this.#refuseChannel(fields);
    if (fields.uint32() !== ownChannel) throw new WireError('no such channel');
    switch (type) {
      case SSH.CHANNEL_OPEN_CONFIRMATION:
        return this.#onOpen(fields);
      case SSH.CHANNEL_WINDOW_ADJUST:
        this.#window += fields.uint32();
        return this.#send();
      case SSH.CHANNEL_DATA:
        return this.#onData(fields.bytes());
      case SSH.CHANNEL_EXTENDED_DATA:
        fields.uint32();
        return this.#onErrorData(fields.bytes());
      case SSH.CHANNEL_OPEN_FAILURE:
        fields.uint32();
        return 'command' in this.#to
          ? this.#end()
          : this.destroy(new Error(`the hop says: ${fields.text()}`));
      case SSH.CHANNEL_FAILURE:
      case SSH.CHANNEL_CLOSE:
        return this.#end();
      case SSH.CHANNEL_EOF:
        // CHANNEL_CLOSE follows a command by itself; for a TCP connection it waits for the end of our side.
        return 'command' in this.#to ? undefined : this.#end();
      default:
      // An exit status precedes CHANNEL_CLOSE, which is enough to know.
    }
  }

  #onGlobalRequest(fields: WireReader): void {
    fields.text();
    if (fields.bool()) this.#transport.send(requestFailure());
  }

  #refuseChannel(fields: WireReader): void {
    fields.text();
    this.#transport.send(openFailure(fields.uint32(), OPEN_FAILURE.PROHIBITED, 'refused'));
  }

  #onOpen(fields: WireReader): void {
    this.#other = fields.uint32();
    this.#window = fields.uint32();
    this.#mostInPacket = Math.max(1, Math.min(fields.uint32(), packetBytes));
    this.#isOpen = true;
    if ('command' in this.#to) {
      const exec = ['exec', true, this.#to.command] as const;
      this.#transport.send(message(SSH.CHANNEL_REQUEST, { uint32: this.#other }, ...exec));
    } else this.emit('connect');
    this.#send();
  }

  #onData(bytes: Buffer): void {
    this.#unread += bytes.length;
    if (this.#unread > windowBytes + this.readableHighWaterMark) throw new WireError('more than the window');
    const begun = this.#ahead ? this.#versionIn(bytes) : bytes;
    if (!begun || this.push(toKeep(begun))) this._read();
  }

  /** The bytes from the version line on (RFC 4253, section 4.2); undefined until that line is complete. */
  #versionIn(bytes: Buffer): Buffer | undefined {
    const ahead = Buffer.concat([this.#ahead ?? Buffer.alloc(0), bytes]);
    const found = /(?<=^|\n)SSH-[^\n]*\n/.exec(ahead.toString('latin1'));
    if (!found && ahead.length > mostPrinted) throw new WireError('no version of SSH came');
    this.#ahead = found ? undefined : ahead;
    return found ? ahead.subarray(found.index) : undefined;
  }

  #onErrorData(bytes: Buffer): void {
    this.#unread += bytes.length;
    if ('command' in this.#to) this.#to.onError(bytes.toString('utf8'));
    this._read();
  }

  #end(): void {
    this.#sendOwn(SSH.CHANNEL_CLOSE);
    this.#isOpen = false;
    this.#waiting = undefined;
    this.push(null);
    this.resume();
  }
}
