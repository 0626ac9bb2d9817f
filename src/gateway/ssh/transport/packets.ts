/**
 * Cuts the AEAD packets of one connection (`length(4) · body · tag(16)`) out of read chunks, and decrypts them where
 * they lie, so that they can be encrypted again in place. A packet that is whole in a chunk is passed on there; one
 * that is split over chunks is joined once, with its head and tag.
 */
import { release, take } from './memory.ts';
import type { Protocol } from './ssh2.ts';

export const TAG = 16;
/** Maximum before a login: the size that every implementation must take (RFC 4253, section 6.1). After it: OpenSSH's own maximum. */
const SMALL_PACKET = 35_000;
export const LARGE_PACKET = 256 * 1024;

/** The offset at which reading of the chunk continues after a delivered packet, as ssh2's own ciphers return it. */
export type Further = number | false | undefined;

/** The framing of packets in one direction: the block that lengths are a multiple of, and whether the length is encrypted. */
export type Framing = 'gcm' | 'chacha' | 'other';

/** The framing of a cipher; `other` where the native addon does not provide the cipher, so that ssh2 frames. */
export function cipherFraming(cipher: string, made: { _instance?: object }): Framing {
  if (made._instance === undefined) return 'other';
  if (cipher.includes('-gcm')) return 'gcm';
  return cipher.startsWith('chacha20') ? 'chacha' : 'other';
}

export class Packets {
  /** The other side's current framing; `other` while this class does not read it. */
  framing: Framing = 'other';
  max = SMALL_PACKET;
  /** The packet whose payload is being delivered, in its memory. */
  frame: Buffer | undefined;
  readonly #protocol: Protocol;
  readonly #header = Buffer.alloc(4);
  #headerLength = 0;
  #partial: Buffer | undefined;
  #partialLength = 0;

  constructor(protocol: Protocol) {
    this.#protocol = protocol;
  }

  /** Reads from offset `from`; returns the offset at which another parser has to continue. Throws on an invalid packet. */
  read(chunk: Buffer, from: number): number {
    let at = from;
    while (at < chunk.length) {
      const taken = this.#partial === undefined ? this.#headerLength : this.#partialLength;
      const packet = this.#next(chunk, at);
      if (packet === undefined) return chunk.length;
      at += packet.length - taken;
      const further = this.#deliver(packet);
      if (packet.buffer !== chunk.buffer) release(packet);
      if (further !== undefined) return further === false ? at : further;
    }
    return at;
  }

  /** Returns the next whole packet, or buffers its part in this chunk. */
  #next(chunk: Buffer, at: number): Buffer | undefined {
    if (this.#partial === undefined) {
      const n = Math.min(4 - this.#headerLength, chunk.length - at);
      chunk.copy(this.#header, this.#headerLength, at, at + n);
      const before = this.#headerLength;
      this.#headerLength += n;
      if (this.#headerLength < 4) return undefined;
      const total = 4 + this.#bodyLength() + TAG;
      this.#headerLength = 0;
      if (before === 0 && chunk.length - at >= total) return chunk.subarray(at, at + total);
      // Bytes from before this chunk are in the header: count from the beginning of the packet.
      this.#partial = take(total);
      this.#header.copy(this.#partial);
      this.#partialLength = before;
    }
    const whole = this.#partial;
    const n = Math.min(whole.length - this.#partialLength, chunk.length - at);
    chunk.copy(whole, this.#partialLength, at, at + n);
    this.#partialLength += n;
    if (this.#partialLength < whole.length) return undefined;
    this.#partial = undefined;
    return whole;
  }

  /** The length field, which GCM sends in the clear and ChaCha20-Poly1305 encrypts separately. */
  #bodyLength(): number {
    const { _instance: cipher, inSeqno } = this.#protocol._decipher;
    const isGcm = this.framing === 'gcm';
    const header = this.#header;
    const length = isGcm ? header.readUInt32BE(0) : (cipher?.decryptLen?.(header, inSeqno) ?? 0);
    const block = isGcm ? 16 : 8;
    if (length > this.max || length < block || length % block !== 0) throw new Error('bad packet length');
    return length;
  }

  #deliver(packet: Buffer): Further {
    const decipher = this.#protocol._decipher;
    const length = packet.length - 4 - TAG;
    const body = packet.subarray(4, 4 + length);
    const tag = packet.subarray(4 + length);
    if (this.framing === 'gcm') decipher._instance?.decrypt(body, length, tag);
    else decipher._instance?.decrypt(body, tag, decipher.inSeqno);
    decipher.inSeqno = (decipher.inSeqno + 1) >>> 0;
    const padding = body[0] ?? 0;
    if (padding < 4 || padding + 2 > length) throw new Error('bad padding length');
    this.frame = packet;
    const further = decipher._onPayload(packet.subarray(5, 4 + length - padding));
    this.frame = undefined;
    return further;
  }
}
