/**
 * The PROXY protocol, version 2 (haproxy.org, proxy-protocol.txt): a proxy in front of the gateway first sends a
 * header with the client's address. It is read from trusted proxies only; no SSH client begins like this.
 */
import type { Socket } from 'node:net';
import { plainAddress } from '../../../lib/source-address.ts';
import type { Refusal } from '../login/admission.ts';
import type { Barrier } from './barrier.ts';
import { readChunks } from './reads.ts';

const SIGNATURE = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1');
const HEAD = 16;
/** Size limit. Addresses take 36 bytes, 216 where they are paths; the rest are extensions of the proxy. */
const MOST = 1024;
/** Timeout of a required header, which a proxy sends at once. */
const REQUIRED_MS = 5_000;
/** Timeout of an optional header: delays a client that waits for our version first. */
const OPTIONAL_MS = 1_000;

export type ProxyHeader =
  /** `address` is left out where the proxy connects for itself (LOCAL), or the family is not an Internet one. */
  | { length: number; address?: string }
  /** An incomplete header, none at all, and an invalid one. */
  | 'more'
  | 'none'
  | 'malformed';

export function readProxyHeader(bytes: Buffer): ProxyHeader {
  const known = Math.min(bytes.length, SIGNATURE.length);
  if (!bytes.subarray(0, known).equals(SIGNATURE.subarray(0, known))) return 'none';
  if (bytes.length < HEAD) return 'more';
  const [version, command] = [bytes.readUInt8(12) >> 4, bytes.readUInt8(12) & 15];
  const length = HEAD + bytes.readUInt16BE(14);
  if (version !== 2 || command > 1 || length > MOST) return 'malformed';
  if (bytes.length < length) return 'more';
  if (command === 0) return { length };
  const family = bytes.readUInt8(13);
  // TCP over IPv4 and IPv6. Other families have no usable address.
  if (family === 0x11) {
    if (length < HEAD + 12) return 'malformed';
    return { length, address: bytes.subarray(HEAD, HEAD + 4).join('.') };
  }
  if (family !== 0x21) return { length };
  if (length < HEAD + 36) return 'malformed';
  const groups = Array.from({ length: 8 }, (_, n) => bytes.readUInt16BE(HEAD + 2 * n).toString(16));
  return { length, address: plainAddress(groups.join(':')) };
}

/**
 * Reads the header from a socket, and leaves the bytes after it unread. `onRead` is called once: with the address
 * from the header, with undefined where the socket's own applies, or with a refusal, after which the caller closes.
 * The caller handles socket errors.
 */
export function awaitProxyHeader(
  socket: Socket,
  barrier: Barrier,
  required: boolean,
  onRead: (address: string | undefined, refusal?: Refusal) => void,
): void {
  let bytes: Buffer = Buffer.alloc(0);
  let isRead = false;
  const onData = barrier.guard((chunk: Buffer) => {
    // Bytes that a refused connection still sends arrive here, too.
    if (isRead) return;
    bytes = Buffer.concat([bytes, chunk]);
    const header = readProxyHeader(bytes);
    if (header === 'more') return;
    if (header === 'malformed') done(undefined, 'a malformed PROXY header');
    else if (header === 'none') done(undefined, required ? 'no PROXY header' : undefined);
    else {
      bytes = bytes.subarray(header.length);
      done(header.address);
    }
  });
  const onGone = barrier.guard(() => done(undefined, 'gone'));
  const timer = barrier.after(required ? REQUIRED_MS : OPTIONAL_MS, () => {
    const late = required || bytes.length > 0;
    done(undefined, late ? 'no PROXY header in time' : undefined);
  });

  function done(address: string | undefined, error?: string) {
    isRead = true;
    clearTimeout(timer);
    socket.off('data', onData).off('end', onGone).off('close', onGone).pause();
    if (bytes.length > 0) socket.unshift(bytes);
    const detail = bytes.toString('latin1', 0, 60);
    onRead(address, error === undefined ? undefined : { reason: error, text: '', detail });
  }

  socket.on('end', onGone).on('close', onGone);
  // Reading in this way, a paused socket is not read ahead.
  readChunks(socket, undefined, onData);
  socket.resume();
}
