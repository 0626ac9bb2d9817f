/** The data types of SSH messages (RFC 4251, section 5), and of SFTP, with bounds checks on reading. */

/** A truncated message, or one that breaks the protocol. */
export class WireError extends RangeError {
  override readonly name = 'WireError';
}

/** A cursor over one message. Every read past the end throws a WireError. */
export class WireReader {
  readonly #message: Buffer;
  #at: number;

  constructor(message: Buffer, start = 0) {
    this.#message = message;
    this.#at = start;
  }

  get at(): number {
    return this.#at;
  }

  get left(): number {
    return this.#message.length - this.#at;
  }

  byte(): number {
    return this.#message.readUInt8(this.#take(1));
  }

  bool(): boolean {
    return this.byte() !== 0;
  }

  uint32(): number {
    return this.#message.readUInt32BE(this.#take(4));
  }

  uint64(): bigint {
    return this.#message.readBigUInt64BE(this.#take(8));
  }

  /** A `string` as bytes: a view into the message, not a copy. */
  bytes(): Buffer {
    const from = this.#take(this.uint32());
    return this.#message.subarray(from, this.#at);
  }

  text(): string {
    return this.bytes().toString('utf8');
  }

  rest(): Buffer {
    return this.#message.subarray(this.#at);
  }

  #take(length: number): number {
    const from = this.#at;
    if (length > this.left) throw new WireError('message ends too soon');
    this.#at += length;
    return from;
  }
}

/** A field of a message: a number is a byte, a boolean a boolean, text and bytes a `string`. */
export type Field = number | boolean | string | Buffer | { uint32: number } | { raw: Buffer };

export function message(...fields: [number, ...Field[]]): Buffer {
  return Buffer.concat(fields.map(encode));
}

/** One `string`: its length in four bytes, then its bytes. */
export const sshString = (bytes: Buffer | string): Buffer => encode(bytes);

function uint32(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(4);
  bytes.writeUInt32BE(value >>> 0);
  return bytes;
}

function encode(field: Field): Buffer {
  if (typeof field === 'number') return Buffer.from([field]);
  if (typeof field === 'boolean') return Buffer.from([field ? 1 : 0]);
  if (typeof field === 'string') return encode(Buffer.from(field, 'utf8'));
  if (Buffer.isBuffer(field)) return Buffer.concat([uint32(field.length), field]);
  return 'raw' in field ? field.raw : uint32(field.uint32);
}

/** Messages (RFC 4250, section 4.1). PING and PONG are OpenSSH's own (PROTOCOL, section 1.9). */
export const SSH = {
  DISCONNECT: 1,
  IGNORE: 2,
  UNIMPLEMENTED: 3,
  DEBUG: 4,
  SERVICE_REQUEST: 5,
  SERVICE_ACCEPT: 6,
  EXT_INFO: 7,
  KEXINIT: 20,
  KEX_ECDH_INIT: 30,
  USERAUTH_REQUEST: 50,
  USERAUTH_FAILURE: 51,
  USERAUTH_SUCCESS: 52,
  USERAUTH_BANNER: 53,
  USERAUTH_PK_OK: 60,
  GLOBAL_REQUEST: 80,
  REQUEST_SUCCESS: 81,
  REQUEST_FAILURE: 82,
  CHANNEL_OPEN: 90,
  CHANNEL_OPEN_CONFIRMATION: 91,
  CHANNEL_OPEN_FAILURE: 92,
  CHANNEL_WINDOW_ADJUST: 93,
  CHANNEL_DATA: 94,
  CHANNEL_EXTENDED_DATA: 95,
  CHANNEL_EOF: 96,
  CHANNEL_CLOSE: 97,
  CHANNEL_REQUEST: 98,
  CHANNEL_SUCCESS: 99,
  CHANNEL_FAILURE: 100,
  PING: 192,
  PONG: 193,
} as const;

/** Reasons of SSH_MSG_DISCONNECT (RFC 4253, section 11.1). */
export const DISCONNECT = {
  PROTOCOL_ERROR: 2,
  KEY_EXCHANGE_FAILED: 3,
  SERVICE_NOT_AVAILABLE: 7,
  BY_APPLICATION: 11,
  TOO_MANY_CONNECTIONS: 12,
  NO_MORE_AUTH_METHODS: 14,
} as const;

/** Reasons of SSH_MSG_CHANNEL_OPEN_FAILURE (RFC 4254, section 5.1). */
export const OPEN_FAILURE = {
  PROHIBITED: 1,
  CONNECT_FAILED: 2,
  UNKNOWN_TYPE: 3,
  RESOURCE_SHORTAGE: 4,
} as const;

/** True for a message of a key exchange (RFC 4253, section 12: numbers 20 to 49). */
export function isOfExchange(type = 0): boolean {
  return type >= SSH.KEXINIT && type < SSH.USERAUTH_REQUEST;
}
