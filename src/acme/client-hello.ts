/**
 * Which protocols the first message of a TLS client names (RFC 8446, section 4.1.2; RFC 7301). OpenSSL chooses the certificate before
 * it looks at them, and the authority is to get another one than everybody else.
 */

const handshake = 22;
const clientHello = 1;
const alpn = 16;
/** More is no hello. */
const mostBytes = 16 * 1024;

/** The protocols; undefined while more bytes are needed to say. Empty where there are none, or it is no such message. */
export function protocolsOf(bytes: Buffer): string[] | undefined {
  if (bytes.length >= mostBytes || (bytes.length > 0 && bytes[0] !== handshake)) return [];
  if (bytes.length < 5) return undefined;
  const length = bytes.readUInt16BE(3);
  if (bytes.length < 5 + length) return undefined;
  try {
    return readHello(bytes.subarray(5, 5 + length));
  } catch (error) {
    // It ends too soon, or goes on in another record, as nobody's does who means well.
    if (error instanceof RangeError) return [];
    throw error;
  }
}

function readHello(hello: Buffer): string[] {
  if (hello.readUInt8(0) !== clientHello) return [];
  let at = 4 + 2 + 32;
  at += 1 + hello.readUInt8(at);
  at += 2 + hello.readUInt16BE(at);
  at += 1 + hello.readUInt8(at);
  const end = at + 2 + hello.readUInt16BE(at);
  at += 2;
  while (at + 4 <= end) {
    const type = hello.readUInt16BE(at);
    const length = hello.readUInt16BE(at + 2);
    if (type === alpn) return readNames(hello.subarray(at + 4, at + 4 + length));
    at += 4 + length;
  }
  return [];
}

function readNames(list: Buffer): string[] {
  const names: string[] = [];
  for (let at = 2; at < list.length; ) {
    const length = list.readUInt8(at);
    names.push(list.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return names;
}
