/**
 * The only file that reaches into ssh2. The version is pinned to 1.17.0 in package.json because these are internals:
 * the transport (`Protocol`: identification, key exchange, ciphers; RFC 4253) without its Server, Client and Channel,
 * which end channels themselves. After an upgrade: run test/gateway, then compare Protocol.js and crypto.js with this.
 */
import { createRequire } from 'node:module';
import { plainKeyType, securityKeyType } from '../../../domain/access/ssh-key.ts';
import { extInfo } from '../messages.ts';
import { asCompared, teachHybrid, withOffered } from './hybrid-kex.ts';

const require = createRequire(import.meta.url);

/** An AEAD cipher of the native addon; it works in place on `length(4) · padding length · payload · padding · tag`. */
interface OutCipher {
  outSeqno: number;
  _dead: boolean;
  _instance?: { encrypt(packet: Buffer, sequence?: number): void };
  allocPacket(payloadLength: number): Buffer;
  encrypt(packet: Buffer): void;
}

interface InCipher {
  inSeqno: number;
  _instance?: {
    decrypt(packet: Buffer, lengthOrTag: number | Buffer, tagOrSequence: Buffer | number): void;
    decryptLen?(length: Buffer, sequence: number): number;
  };
  /** Our own onPayload, or that of the key exchange while one runs. Its result ends the reading of a chunk. */
  _onPayload(payload: Buffer): number | false | undefined;
}

export interface Negotiated {
  kex: string;
  cs: { cipher: string };
  sc: { cipher: string };
}

export interface Protocol {
  _parse(chunk: Buffer, from: number, length: number): number | undefined;
  _onPayload(payload: Buffer): number | false | undefined;
  _onHandshakeComplete(negotiated: Negotiated): void;
  _cipher: OutCipher;
  _decipher: InCipher;
  _offer: object;
  _kex: { sessionID: Buffer; remoteExtInfoEnabled: boolean; _sentNEWKEYS: boolean };
  /** Set while a key exchange runs. */
  _kexinit: Buffer | undefined;
  /** Set after a KEXINIT with a wrong guess, until the guessed message. */
  _skipNextInboundPacket: boolean;
  /** Payloads that wait for the end of a key exchange. */
  _queue: Buffer[] | undefined;
  start(): void;
  parse(chunk: Buffer, from: number, length: number): void;
  rekey(): void;
  cleanup(): void;
  disconnect(reason: number): void;
  _destruct(): void;
}

export interface PrivateKey {
  type: string;
  getPublicSSH(): Buffer;
  sign(data: Buffer): Buffer | Error;
}

export interface Offer {
  kex: string[];
  serverHostKey: string[];
  cipher: string[];
  mac: string[];
}

export interface ProtocolOptions {
  ident: string;
  offer: Offer;
  /** Server only. */
  hostKey?: PrivateKey;
  /** Server only: announces support of security keys. */
  securityKeys?: boolean | undefined;
  /** Client only: returns true for the expected public host key blob. */
  verifyHostKey?(blob: Buffer): boolean;
  onHeader(software: string): void;
  onWrite(data: Buffer): void;
  onError(text: string): void;
  /** A disconnect during a key exchange; later ones are delivered as messages. */
  onDisconnect(text: string): void;
  onHandshakeComplete(negotiated: Negotiated): void;
}

type KexInit = new (lists: object) => { lists: { kex: { array: string[] } } };
const ProtocolClass = require('ssh2/lib/protocol/Protocol.js') as new (config: object) => Protocol;
const { KexInit } = require('ssh2/lib/protocol/kex.js') as { KexInit: KexInit };
const { parseKey } = require('ssh2/lib/protocol/keyParser.js') as { parseKey(text: string): unknown };

/** A protocol object for one connection; a server when it has a host key. */
export function createProtocol(options: ProtocolOptions): Protocol {
  const { hostKey, verifyHostKey } = options;
  const protocol = new ProtocolClass({
    server: hostKey !== undefined,
    hostKeys: hostKey && { [hostKey.type]: hostKey },
    hostVerifier: verifyHostKey,
    ident: options.ident,
    offer: kexLists(options.offer, hostKey !== undefined),
    onHeader: (header: { versions: { software: string } }) => options.onHeader(header.versions.software),
    onWrite: options.onWrite,
    onError: ({ message: text }: Error) => options.onError(withOffered(text, lastInit())),
    messageHandlers: { DISCONNECT: (_: Protocol, __: number, text: string) => options.onDisconnect(text) },
    onHandshakeComplete: options.onHandshakeComplete,
  });
  const lastInit = teachHybrid(protocol);
  // On an error ssh2 disconnects without a reason and drops its keys; the transport sends the reason first.
  const destruct = protocol._destruct.bind(protocol);
  protocol.disconnect = () => {};
  protocol._destruct = () => {};
  protocol.cleanup = destruct;
  const taken = options.securityKeys ? [plainKeyType, securityKeyType] : [plainKeyType];
  if (hostKey) sendOwnExtensions(protocol, [...taken, ...rsaAlgorithms]);
  return protocol;
}

/** Announced although no RSA key is accepted, as sshd does: without one of them paramiko stops at an RSA key instead of trying the next. */
const rsaAlgorithms = ['rsa-sha2-512', 'rsa-sha2-256', 'ssh-rsa'];

/**
 * Sends our own EXT_INFO (RFC 8308) instead of ssh2's, which lists DSA and mistypes one name. The ping extension lets
 * a client hide the timing of keystrokes.
 */
function sendOwnExtensions(protocol: Protocol, algorithms: readonly string[]): void {
  const complete = protocol._onHandshakeComplete;
  let first = true;
  protocol._onHandshakeComplete = (negotiated) => {
    const wanted = first && protocol._kex.remoteExtInfoEnabled;
    first = false;
    protocol._kex.remoteExtInfoEnabled = false;
    if (wanted) {
      const payload = extInfo({ 'server-sig-algs': algorithms.join(), 'ping@openssh.com': '0' });
      const packet = protocol._cipher.allocPacket(payload.length);
      packet.set(payload, 5);
      protocol._cipher.encrypt(packet);
    }
    complete(negotiated);
  };
}

/** The KEXINIT lists of a side, with the markers of strict key exchange and of extension negotiation (RFC 8308). */
export function kexLists(offer: Offer, server: boolean): object {
  const markers = server ? ['kex-strict-s-v00@openssh.com'] : ['ext-info-c', 'kex-strict-c-v00@openssh.com'];
  const direction = { cipher: offer.cipher, mac: offer.mac, compress: ['none'], lang: [] };
  const made = new KexInit({
    kex: [...offer.kex, ...markers],
    serverHostKey: offer.serverHostKey,
    cs: direction,
    sc: direction,
  });
  made.lists.kex.array = asCompared(made.lists.kex.array);
  return made;
}

/** Reads an OpenSSH-format ed25519 private key without passphrase. */
export function readPrivateKey(text: string): PrivateKey {
  const parsed = parseKey(text);
  const key = (Array.isArray(parsed) ? parsed[0] : parsed) as PrivateKey | Error;
  if (key instanceof Error) throw new Error(`cannot read the private key: ${key.message}`);
  if (key.type !== 'ssh-ed25519') throw new Error(`the key must be ssh-ed25519, it is ${key.type}`);
  return key;
}

/** The key in use is the first. */
export function readPrivateKeys(texts: readonly string[]): [PrivateKey, ...PrivateKey[]] {
  const [first = '', ...others] = texts;
  return [readPrivateKey(first), ...others.map(readPrivateKey)];
}
