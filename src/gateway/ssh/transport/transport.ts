/**
 * One side of the gateway: an SSH transport (RFC 4253) on a socket, by ssh2's Protocol. It delivers decrypted
 * messages and sends others; it does not know what they mean. It adds to ssh2: a relayed packet is encrypted again in
 * the memory it arrived in (AEAD ciphers), the output that one chunk causes goes out in one write, and queued bytes
 * are counted.
 */
import { messageOf } from '../../../lib/error-message.ts';
import { DISCONNECT, isOfExchange, message, SSH, WireError, WireReader } from '../../../lib/ssh/wire.ts';
import { maxHandshakeWaitMs, tooMany } from '../login/admission.ts';
import { disconnectMessage } from '../messages.ts';
import { offerToClient } from './algorithms.ts';
import type { KexInit } from './hybrid-kex.ts';
import { toKeep } from './memory.ts';
import { awaitExchange, createOpening, type Opening } from './opening.ts';
import { Outbox } from './outbox.ts';
import { cipherFraming, type Framing, type Further, LARGE_PACKET, Packets, TAG } from './packets.ts';
import { createReading, type Reading, readChunks } from './reads.ts';
import { createProtocol, kexLists, type Negotiated, type Protocol } from './ssh2.ts';
import type { ByteStream, End, TransportOptions } from './transport-options.ts';

/** OpenSSH's client and sshd send `eow` and `no-more-sessions` only to a peer whose version begins with this. */
export const IDENT = 'OpenSSH_9.9 Andromeda';
/** Limit on bytes before a login: ten times a dozen keys, each offered and proven. It limits the answers too. */
const MOST_BEFORE_LOGIN = 256 * 1024;
const LINGER_MS = 500;

export class Transport {
  /** Handles every message that is not the transport's own. Set by the login, then by the relay. */
  onMessage: (payload: Buffer) => void = () => {};
  onEnd: (end: End) => void = () => {};
  /** Called when the queued bytes fall below the limit again. */
  onDrained: () => void = () => {};
  lastHeard = performance.now();
  lastAsked = 0;
  /** The version of the other side, after "SSH-2.0-". */
  software = '';
  /** The first bytes received, as text: an sshd that refuses a connection says why before its version. */
  greeting = '';

  readonly #options: TransportOptions;
  readonly #socket: ByteStream;
  readonly #protocol: Protocol;
  readonly #outbox: Outbox;
  readonly #reading: Reading;
  readonly #packets: Packets;
  readonly #kexPayload: (payload: Buffer) => Further;
  #opening: Opening | undefined;
  #out: Framing = 'other';
  /** True after the login; until then little is read and little answered. */
  #trusted = false;
  #received = 0;
  /** Bytes queued for the end of a key exchange. */
  #queued = 0;
  #sinceRekey = 0;
  #keyedAt = performance.now();
  #rekeyTimer: NodeJS.Timeout | undefined;
  #full = false;
  /** True while too many answers to the other side's own messages are queued, because it does not read them. */
  #unread = false;
  #paused = false;
  #ready = false;
  #ended = false;

  constructor(options: TransportOptions) {
    this.#options = options;
    this.#socket = options.socket;
    const { barrier } = options;
    this.#reading = createReading(options.socket, barrier);
    this.#outbox = new Outbox(options.socket, barrier, () => this.#measure());
    barrier.onFault(() => {
      this.#ended = true;
      options.socket.destroy();
    });
    this.#protocol = createProtocol({
      ident: IDENT,
      offer: options.offer ?? offerToClient(undefined),
      ...(options.hostKey && { hostKey: options.hostKey, securityKeys: options.securityKeys }),
      ...(options.verifyHostKey && { verifyHostKey: options.verifyHostKey }),
      onHeader: (software) => this.#onHeader(software),
      onWrite: (data) => this.#write(data),
      onError: (text) => this.#fail(DISCONNECT.KEY_EXCHANGE_FAILED, text, { by: 'protocol', text }),
      onDisconnect: (text) => this.#finish({ by: 'peer', text }),
      onHandshakeComplete: (negotiated) => this.#onKeys(negotiated),
    });
    this.#packets = new Packets(this.#protocol);
    this.#kexPayload = this.#protocol._onPayload;
    this.#protocol._onPayload = (payload) => this.#onPayload(payload);
    this.#listen();
    this.#protocol.start();
    if (options.hostKey) this.#opening = createOpening(barrier, (...known) => this.#open(...known));
  }

  /** The session identifier, which both sides' signatures cover (RFC 4253, section 7.2). */
  get sessionId(): Buffer {
    return this.#protocol._kex.sessionID;
  }

  /** True while more bytes than the limit are queued. */
  get full(): boolean {
    return this.#full;
  }

  get paused(): boolean {
    return this.#paused;
  }

  get ended(): boolean {
    return this.#ended;
  }

  get #exchangesKeys(): boolean {
    return this.#protocol._kexinit !== undefined;
  }

  /** Called after the login: allows larger packets, any number of bytes, rekeying and pings. */
  trust(): void {
    this.#trusted = true;
    this.#packets.max = LARGE_PACKET;
  }

  /** Starts a rekey where the keys are older than `ageMs` (RFC 4253, section 9). */
  renewKeys(now: number, ageMs: number): void {
    if (this.#ended || !this.#ready || this.#exchangesKeys || this.#isHeld || now - this.#keyedAt < ageMs)
      return;
    this.#keyedAt = now;
    this.#protocol.rekey();
    this.#hold();
  }

  /** Sends a message; during a key exchange it is queued. */
  send(payload: Buffer): void {
    if (this.#ended) return;
    if (this.#exchangesKeys) {
      this.#protocol._queue ??= [];
      this.#protocol._queue.push(toKeep(payload));
      this.#queued += payload.length;
      this.#measure();
      return;
    }
    this.#seal(payload);
  }

  /**
   * Forwards the message that `from` is delivering, encrypted in place where both ciphers frame alike: afterwards
   * `payload` holds ciphertext.
   */
  forward(from: Transport, payload: Buffer): void {
    const frame = from.#packets.frame;
    const cipher = this.#protocol._cipher;
    const block = this.#out === 'gcm' ? 15 : 7;
    if (
      frame === undefined ||
      this.#out === 'other' ||
      this.#ended ||
      cipher._instance === undefined ||
      this.#exchangesKeys ||
      ((frame.length - TAG - 4) & block) !== 0
    ) {
      this.send(payload);
      return;
    }
    frame.writeUInt32BE(frame.length - TAG - 4, 0);
    cipher._instance.encrypt(frame, cipher.outSeqno);
    cipher.outSeqno = (cipher.outSeqno + 1) >>> 0;
    this.#write(frame);
  }

  /** Stops reading until resume(). Chunks that are already read are still delivered. */
  pause(): void {
    if (this.#paused) return;
    this.#paused = true;
    this.#hold();
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.lastHeard = performance.now();
    this.#hold();
  }

  /** Sends the reason (SSH_MSG_DISCONNECT), waits at most `lingerMs` for the other side to read it, and closes. onEnd is not called. */
  close(reason: number, text: string, lingerMs: number): void {
    if (this.#ended) return;
    this.onEnd = () => {};
    // During a key exchange the disconnect goes ahead of the queue, as ssh2's own does. Between our NEWKEYS and the
    // peer's it would understand neither the old keys nor the new ones.
    if (this.#ready || !this.#protocol._kex?._sentNEWKEYS) this.#seal(disconnectMessage(reason, text));
    this.#finish({ by: 'us', text }, lingerMs);
  }

  #listen(): void {
    const socket = this.#socket;
    const { guard } = this.#options.barrier;
    const onError = guard((error: Error) => this.#finish({ by: 'network', text: error.message }));
    const onChunk = guard((chunk: Buffer) => this.#feed(chunk));
    const onDrain = guard(() => this.#measure());
    const onClosed = guard(() => this.#finish({ by: 'network', text: 'connection closed' }));
    // First of all: a socket without an `error` listener throws its errors at the process.
    socket.on('error', onError).on('drain', onDrain).on('close', onClosed).on('end', onClosed);
    readChunks(socket, this.#options.reads, onChunk);
    socket.setNoDelay(true);
  }

  #feed(chunk: Buffer): void {
    if (this.#ended) return;
    this.lastHeard = performance.now();
    if (this.greeting.length < 100) this.greeting += chunk.toString('latin1', 0, 100);
    this.#received += chunk.length;
    if (!this.#trusted && this.#received > MOST_BEFORE_LOGIN) this.#failProtocol('too much before the login');
    else if (this.#opening) this.#opening.feed(chunk);
    else {
      // Before the login many parts are kept: the beginning of a version, signed data, requests in the queue.
      const kept = this.#trusted ? chunk : toKeep(chunk);
      this.#attempt(() => this.#protocol.parse(kept, 0, kept.length));
      this.#reading.onChunk(chunk.length);
    }
  }

  /** Settles the offer and starts to read, once the client's KEXINIT is known or will only follow ours. */
  #open(init: KexInit | undefined, bytes: Buffer): void {
    this.#opening = undefined;
    if (this.#ended) return;
    this.#protocol._offer = kexLists(offerToClient(init), true);
    if (bytes.length > 0) this.#attempt(() => this.#protocol.parse(bytes, 0, bytes.length));
  }

  #attempt(step: () => void): void {
    try {
      step();
    } catch (error) {
      if (!this.#ended) this.#failProtocol(messageOf(error));
    }
  }

  /** Reports a protocol error of the other side, and ends. */
  #failProtocol(text: string): void {
    this.#fail(DISCONNECT.PROTOCOL_ERROR, 'protocol error', { by: 'protocol', text });
  }

  #fail(reason: number, text: string, end: End = { by: 'us', text }): void {
    const onEnd = this.onEnd;
    this.close(reason, text, LINGER_MS);
    onEnd(end);
  }

  #onHeader(software: string): void {
    this.software = software;
    awaitExchange(this.#protocol, (goOn) => {
      const ms = this.#options.handshakeMs?.() ?? 0;
      if (ms >= maxHandshakeWaitMs) this.#fail(DISCONNECT.TOO_MANY_CONNECTIONS, tooMany.text);
      else this.#reading.delay(ms, () => this.#ended || this.#attempt(goOn));
    });
    const packets = this.#packets;
    const ssh2Parse = this.#protocol._parse.bind(this.#protocol);
    this.#protocol._parse = (chunk, from, length) =>
      packets.framing === 'other' ? ssh2Parse(toKeep(chunk), from, length) : packets.read(chunk, from);
  }

  #onKeys(negotiated: Negotiated): void {
    this.#sinceRekey = 0;
    this.#keyedAt = performance.now();
    clearTimeout(this.#rekeyTimer);
    this.#queued = 0;
    const server = this.#options.hostKey !== undefined;
    const inbound = server ? negotiated.cs.cipher : negotiated.sc.cipher;
    const outbound = server ? negotiated.sc.cipher : negotiated.cs.cipher;
    this.#packets.framing = cipherFraming(inbound, this.#protocol._decipher);
    this.#out = cipherFraming(outbound, this.#protocol._cipher);
    if (this.#ready) {
      this.#measure();
      this.#hold();
      this.#reading.delay(this.#options.handshakeMs?.() ?? 0, () => {});
      return;
    }
    this.#ready = true;
    this.#options.onReady(negotiated);
  }

  /** RFC 4344, section 3: rekeys before a cipher has processed too many bytes. Half as many again may pass while reading is held. */
  #count(bytes: number): void {
    this.#sinceRekey += bytes;
    const most = this.#options.limits.rekeyBytes * (this.#isHeld ? 1.5 : 1);
    if (this.#sinceRekey < most || !this.#ready) return;
    this.#sinceRekey = 0;
    this.#protocol.rekey();
    this.#hold();
  }

  /** Reads on during a key exchange, as both sides may wait for one, and until the peer's KEXINIT; while reading is held we start none. */
  #hold(): void {
    this.#reading.hold(this.#isHeld && !this.#exchangesKeys);
  }

  get #isHeld(): boolean {
    return this.#paused || this.#unread;
  }

  #onPayload(payload: Buffer): Further {
    const type = payload[0] ?? 0;
    this.#count(payload.length);
    if (type >= 50 && type < 192) this.onMessage(payload);
    else if (type >= 20 && type < 50) return this.#onKeyExchange(type, payload);
    else this.#onTransportMessage(type, payload);
    return this.#ended ? Number.POSITIVE_INFINITY : undefined;
  }

  /**
   * A rekey. ssh2 accepts no other message while one runs; OpenSSH does, and asyncssh needs it: it sends IGNORE, and
   * the message that made it ask for new keys. Strictness is for the first exchange alone (OpenSSH's PROTOCOL, 1.10).
   */
  #onKeyExchange(type: number, payload: Buffer): Further {
    if (!this.#trusted) throw new WireError('a second key exchange before the login');
    // ssh2 keeps parts of these messages until the exchange is over.
    const further = this.#kexPayload(toKeep(payload));
    if (type !== SSH.KEXINIT) return further;
    const text = 'The key exchange took too long.';
    const onLate = () => this.#fail(DISCONNECT.KEY_EXCHANGE_FAILED, text, { by: 'protocol', text });
    // Timed from the peer's own KEXINIT on: a suspended client leaves ours unanswered for as long as it sleeps.
    this.#rekeyTimer = this.#options.barrier.after(this.#options.limits.rekeyGraceMs, onLate);
    const decipher = this.#protocol._decipher;
    this.#hold();
    const ofExchange = decipher._onPayload;
    decipher._onPayload = (next) =>
      isOfExchange(next[0]) ? ofExchange(toKeep(next)) : this.#onPayload(next);
    return further;
  }

  #onTransportMessage(type: number, payload: Buffer): void {
    if (type === SSH.DISCONNECT) {
      this.#finish({ by: 'peer', text: new WireReader(payload, 5).text() });
    } else if (type === SSH.SERVICE_REQUEST || type === SSH.SERVICE_ACCEPT) {
      this.onMessage(payload);
    } else if (type === SSH.PING) {
      if (this.#trusted) this.send(message(SSH.PONG, new WireReader(payload, 1).bytes()));
    } else if (type > SSH.EXT_INFO) {
      this.refuseMessage();
    }
  }

  /** Answers the message being delivered with "unimplemented" (RFC 4253, section 11.4). */
  refuseMessage(): void {
    const sequence = (this.#protocol._decipher.inSeqno - 1) >>> 0;
    this.send(message(SSH.UNIMPLEMENTED, { uint32: sequence }));
  }

  #seal(payload: Buffer): void {
    const cipher = this.#protocol._cipher;
    try {
      const packet = cipher.allocPacket(payload.length);
      packet.set(payload, 5);
      cipher.encrypt(packet);
    } catch (error) {
      this.#finish({ by: 'protocol', text: messageOf(error) });
    }
  }

  #write(data: Buffer): void {
    this.#sinceRekey += data.length;
    this.#outbox.write(data);
  }

  #measure() {
    if (this.#ended) return;
    const waiting = this.#outbox.waiting + this.#queued;
    const { backlogBytes, backlogHardBytes } = this.#options.limits;
    if (waiting > backlogHardBytes) return this.#failProtocol('does not read what it asks for');
    // Relayed bytes stop at the limit. Twice as many are answers: reading stops until the peer has read those.
    const unread = waiting > 2 * backlogBytes;
    if (unread !== this.#unread) {
      this.#unread = unread;
      this.#hold();
    }
    const full = waiting > backlogBytes;
    if (full === this.#full) return;
    this.#full = full;
    if (!full) this.onDrained();
  }

  #finish(end: End, lingerMs = LINGER_MS): void {
    if (this.#ended) return;
    // Before anything else: the flush below may find too many queued bytes, which would end it again.
    this.#ended = true;
    this.#opening?.stop();
    clearTimeout(this.#rekeyTimer);
    const [socket, { barrier }] = [this.#socket, this.#options];
    barrier.after(lingerMs, () => socket.destroy());
    // Not within ssh2's own parsing, which still uses the ciphers.
    setImmediate(barrier.guard(() => this.#protocol.cleanup()));
    this.#outbox.flush();
    socket.end();
    this.#reading.hold(false);
    this.onEnd(end);
  }
}
