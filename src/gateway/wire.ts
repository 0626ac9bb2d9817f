/** The data types of SSH messages (RFC 4251, section 5): reading with bounds checked, writing into one buffer. */
export class WireError extends Error {
  override readonly name = 'WireError';
}

export interface Reader {
  byte(): number;
  bool(): boolean;
  uint32(): number;
  /** A `string` as bytes: a view, not a copy. */
  bytes(): Buffer;
  text(): string;
  rest(): Buffer;
  /** Where the next read starts. */
  at(): number;
}

/** A cursor over `message` from `start`. It throws WireError where the message ends too soon. */
export function reader(message: Buffer, start = 0): Reader {
  let at = start;
  const take = (length: number): number => {
    const from = at;
    if (from + length > message.length) throw new WireError('message ends too soon');
    at += length;
    return from;
  };
  const uint32 = () => message.readUInt32BE(take(4));
  const bytes = () => {
    const length = uint32();
    const from = take(length);
    return message.subarray(from, from + length);
  };
  return {
    byte: () => message.readUInt8(take(1)),
    bool: () => message.readUInt8(take(1)) !== 0,
    uint32,
    bytes,
    text: () => bytes().toString('utf8'),
    rest: () => message.subarray(at),
    at: () => at,
  };
}

/** A field of a message: a number is a byte, a boolean a boolean, text and bytes a `string`. */
export type Field = number | boolean | string | Buffer | { uint32: number } | { raw: Buffer };

/** One message: its number, then its fields. */
export function message(...fields: [number, ...Field[]]): Buffer {
  return Buffer.concat(fields.map(encode));
}

/** One `string` (RFC 4251, section 5): its length, then its bytes. */
export const sshString = (bytes: Buffer | string): Buffer => encode(bytes);

function encode(field: Field): Buffer {
  if (typeof field === 'number') return Buffer.from([field]);
  if (typeof field === 'boolean') return Buffer.from([field ? 1 : 0]);
  if (typeof field === 'string') return encode(Buffer.from(field, 'utf8'));
  if (Buffer.isBuffer(field)) return Buffer.concat([uint32(field.length), field]);
  return 'raw' in field ? field.raw : uint32(field.uint32);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(4);
  bytes.writeUInt32BE(value >>> 0);
  return bytes;
}
