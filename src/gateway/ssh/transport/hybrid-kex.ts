/**
 * The post-quantum key exchange mlkem768x25519-sha256 (draft-ietf-sshm-mlkem-hybrid-kex): X25519 and ML-KEM-768
 * together. ssh2 does not have it and cannot be extended, so here it runs inside ssh2 under the name of an exchange
 * that is never offered, with every input of the shared secret replaced.
 */
import {
  createHash,
  createPublicKey,
  decapsulate,
  diffieHellman,
  encapsulate,
  generateKeyPairSync,
  type KeyObject,
} from 'node:crypto';
import { message, WireReader } from '../../../lib/ssh/wire.ts';

export const HYBRID = 'mlkem768x25519-sha256';
/** ssh2 knows this name; it is never offered, and never accepted from a peer. */
const ALIAS = 'diffie-hellman-group1-sha1';

const ENCAPSULATION_KEY = 1184;
const CIPHERTEXT = 1088;
const POINT = 32;

/** The members of ssh2's key exchange that are read and replaced. */
interface ExchangeInternals {
  negotiated: { kex: string };
  hashName: string;
  _remoteKexinit: Buffer;
  _protocol: { _server: boolean };
  generateKeys(): void;
  getPublicKey(): Buffer;
  convertPublicKey(key: Buffer): Buffer;
  computeSecret(other: Buffer): Buffer | Error;
}

interface PacketReader {
  read(payload: Buffer): Buffer;
  cleanup(): void;
}

interface ProtocolInternals {
  _kex: unknown;
  _packetRW: { read: PacketReader };
  _skipNextInboundPacket: boolean;
  _offer: { lists: { kex: { array: string[] }; serverHostKey: { array: string[] } } };
}

/** The names of an offer as ssh2 compares them; the KEXINIT that is sent has the real name. */
export const asCompared = (names: readonly string[]): string[] =>
  names.map((name) => (name === HYBRID ? ALIAS : name));

/** Adds the exchange to one protocol object of ssh2, for the first and every later one; returns a getter of the KEXINIT that came last. */
export function teachHybrid(protocol: object): () => Buffer | undefined {
  const host = protocol as ProtocolInternals;
  let received: Buffer | undefined;
  let packets = host._packetRW.read;
  // Wraps ssh2's reader: every payload passes here first.
  Object.defineProperty(host._packetRW, 'read', {
    get: () => ({
      read(payload: Buffer) {
        const read = packets.read(payload);
        if (read[0] !== 20) return read;
        received = Buffer.from(read);
        const known = translated(received);
        // Hides the guess from ssh2, which would skip messages by its own rule; ours is applied here.
        host._skipNextInboundPacket = isWrongGuess(known, host._offer);
        known.fill(0, known.length - 5);
        return known;
      },
      cleanup: () => packets.cleanup(),
    }),
    set(next: PacketReader) {
      packets = next;
    },
  });
  let exchange = host._kex;
  Object.defineProperty(host, '_kex', {
    get: () => exchange,
    set(next: ExchangeInternals | undefined) {
      exchange = next;
      if (!next || !received) return;
      // Both sides sign the KEXINIT as it was sent.
      next._remoteKexinit = received;
      if (next.negotiated.kex === ALIAS) replaceSecret(next);
    },
  });
  return () => received;
}

/**
 * True if the next message is a wrong guess, to be skipped (RFC 4253, section 7.1): a guess is right where both sides
 * prefer the same exchange and the same kind of host key. ssh2 compares the exchange alone.
 */
function isWrongGuess(kexInit: Buffer, { lists }: ProtocolInternals['_offer']): boolean {
  const { lists: theirs, isGuessed } = readKexInit(kexInit);
  const [exchanges = [], hostKeys = []] = theirs;
  const isRight = exchanges[0] === lists.kex.array[0] && hostKeys[0] === lists.serverHostKey.array[0];
  return isGuessed && !isRight;
}

/** The lists of a KEXINIT, and whether a guessed message follows (RFC 4253, section 7.1). */
export interface KexInit {
  lists: string[][];
  isGuessed: boolean;
}

/** Throws on a truncated payload. */
export function readKexInit(payload: Buffer): KexInit {
  const fields = new WireReader(payload, 17);
  return {
    lists: Array.from({ length: 10 }, () => fields.text().split(',')),
    isGuessed: fields.rest()[0] === 1,
  };
}

/** ssh2's names of the lists of a KEXINIT, in their order. */
const names = 'key exchange algorithm,host key format,C->S cipher,S->C cipher,C->S MAC,S->C MAC'.split(',');

/** Adds the other side's list to an error of ssh2 that nothing in it matches. */
export function withOffered(fault: string, init: Buffer | undefined): string {
  const at = names.findIndex((name) => fault.endsWith(`no matching ${name}`));
  return init && at >= 0 ? `${fault}: ${readKexInit(init).lists[at]}`.slice(0, 300) : fault;
}

/** A KEXINIT in which the exchange has ssh2's name for it, and no other exchange has. */
function translated(payload: Buffer): Buffer {
  const fields = new WireReader(payload, 17);
  const names = fields.text().split(',');
  const known = names.map((name) => (name === HYBRID ? ALIAS : name === ALIAS ? `no-${ALIAS}` : name));
  return Buffer.concat([payload.subarray(0, 17), message(0, known.join(',')).subarray(1), fields.rest()]);
}

function replaceSecret(exchange: ExchangeInternals): void {
  exchange.negotiated.kex = HYBRID;
  const isServer = exchange._protocol._server;
  const own = isServer ? createAnswer() : createQuestion();
  Object.assign(exchange, {
    hashName: 'sha256',
    generateKeys() {},
    getPublicKey: own.toSend,
    convertPublicKey: (key: Buffer) => key,
    computeSecret(other: Buffer): Buffer | Error {
      try {
        return own.secret(other);
      } catch (error) {
        return error instanceof Error ? error : new Error(String(error));
      }
    },
  });
}

interface ExchangeHalf {
  toSend(): Buffer;
  /** Computes the secret from the other side's message. Throws where that is invalid. */
  secret(other: Buffer): Buffer;
}

/** The client's half: sends a fresh encapsulation key and a point, gets a ciphertext and a point. */
export function createQuestion(): ExchangeHalf {
  const lattice = generateKeyPairSync('ml-kem-768');
  const curve = generateKeyPairSync('x25519');
  const sent = Buffer.concat([raw(lattice.publicKey, ENCAPSULATION_KEY), raw(curve.publicKey, POINT)]);
  return {
    toSend: () => sent,
    secret(other) {
      requireLength(other, CIPHERTEXT + POINT);
      const first = decapsulate(lattice.privateKey, other.subarray(0, CIPHERTEXT));
      return combined(first, agreed(curve.privateKey, other.subarray(CIPHERTEXT)));
    },
  };
}

/** The server's half: its message depends on the one that it receives. */
export function createAnswer(): ExchangeHalf {
  let sent: Buffer = Buffer.alloc(0);
  return {
    toSend: () => sent,
    secret(other) {
      requireLength(other, ENCAPSULATION_KEY + POINT);
      const curve = generateKeyPairSync('x25519');
      const key = publicKey(latticePrefix, other.subarray(0, ENCAPSULATION_KEY));
      const { sharedKey, ciphertext } = encapsulate(key);
      sent = Buffer.concat([ciphertext, raw(curve.publicKey, POINT)]);
      return combined(sharedKey, agreed(curve.privateKey, other.subarray(ENCAPSULATION_KEY)));
    },
  };
}

/** A hash of both secrets, not a number: it enters the exchange hash unchanged. */
const combined = (lattice: Buffer, curve: Buffer) =>
  createHash('sha256').update(lattice).update(curve).digest();

const agreed = (privateKey: KeyObject, point: Buffer) =>
  diffieHellman({ privateKey, publicKey: publicKey(curvePrefix, point) });

// A public key in DER is a fixed beginning and the key itself (RFC 8410, RFC 9935).
const latticePrefix = Buffer.from('308204b2300b0609608648016503040402038204a100', 'hex');
const curvePrefix = Buffer.from('302a300506032b656e032100', 'hex');

const publicKey = (prefix: Buffer, key: Buffer) =>
  createPublicKey({ key: Buffer.concat([prefix, key]), format: 'der', type: 'spki' });

const raw = (key: KeyObject, length: number) => key.export({ format: 'der', type: 'spki' }).subarray(-length);

function requireLength(other: Buffer, length: number): void {
  if (other.length !== length) throw new Error(`${other.length} bytes in place of ${length}`);
}
