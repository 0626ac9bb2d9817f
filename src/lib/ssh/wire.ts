/** The data types of SSH messages (RFC 4251, section 5), and of SFTP: bounds are checked on reading. */

/** A message that ends too soon or breaks the protocol. */
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

/** One message: its number, then its fields. */
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
