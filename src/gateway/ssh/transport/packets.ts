/** Decrypts the AEAD packets of one connection where they lie, so that they can be encrypted again in place. */
import { createFramer, type Framing, type Further, TAG } from './framing.ts';
import type { Protocol } from './ssh2.ts';

/** Before a login: what every implementation must take (RFC 4253, section 6.1). After it: OpenSSH's own maximum. */
const SMALL_PACKET = 35_000;
export const LARGE_PACKET = 256 * 1024;

export interface Packets {
  /** How the other side frames now; `other` while this does not read it. */
  framing: Framing;
  /** The longest that is taken. */
  max: number;
  /** The packet whose payload is being delivered, as it lies in memory. */
  frame: Buffer | undefined;
  /** Reads from `from` on; returns where another parser has to go on. Throws where a packet is not right. */
  read(chunk: Buffer, from: number): number;
}

export function createPackets(protocol: Protocol): Packets {
  const framer = createFramer(bodyLength, deliver);
  const packets: Packets = {
    framing: 'other',
    max: SMALL_PACKET,
    frame: undefined,
    read: (chunk, from) => framer.read(chunk, from),
  };
  return packets;

  /** The length field, which GCM sends in the clear and ChaCha20-Poly1305 encrypts by itself. */
  function bodyLength(header: Buffer): number {
    const decipher = protocol._decipher;
    const gcm = packets.framing === 'gcm';
    const length = gcm
      ? header.readUInt32BE(0)
      : (decipher._instance?.decryptLen?.(header, decipher.inSeqno) ?? 0);
    const block = gcm ? 16 : 8;
    if (length > packets.max || length < block || length % block !== 0) throw new Error('bad packet length');
    return length;
  }

  function deliver(packet: Buffer): Further {
    const decipher = protocol._decipher;
    const length = packet.length - 4 - TAG;
    const body = packet.subarray(4, 4 + length);
    const tag = packet.subarray(4 + length);
    if (packets.framing === 'gcm') decipher._instance?.decrypt(body, length, tag);
    else decipher._instance?.decrypt(body, tag, decipher.inSeqno);
    decipher.inSeqno = (decipher.inSeqno + 1) >>> 0;
    const padding = body[0] ?? 0;
    if (padding < 4 || padding + 2 > length) throw new Error('bad padding length');
    packets.frame = packet;
    const further = decipher._onPayload(packet.subarray(5, 4 + length - padding));
    packets.frame = undefined;
    return further;
  }
}
