/** The answers of the sftp server, as bytes. */
import type { Stats } from 'node:fs';
import { uint32 } from '../../../../../ssh/wire.ts';
import { attributes } from './attributes.ts';

/** The longest packet either side may send, as OpenSSH has it. */
export const maxPacket = 256 * 1024;
/** The longest read or write in one packet. */
export const maxData = maxPacket - 1024;

export const code = { ok: 0, eof: 1, noSuchFile: 2, denied: 3, failure: 4, badMessage: 5, unsupported: 8 };

const types = { version: 2, status: 101, handle: 102, data: 103, name: 104, attrs: 105, extended: 201 };

const extensions: [string, string][] = [
  ['posix-rename@openssh.com', '1'],
  ['statvfs@openssh.com', '2'],
  ['hardlink@openssh.com', '1'],
  ['fsync@openssh.com', '1'],
  ['limits@openssh.com', '1'],
  ['expand-path@openssh.com', '1'],
];

/** A refusal with a code of its own. */
export class SftpError extends Error {
  readonly code: number;

  constructor(status: number, message: string) {
    super(message);
    this.code = status;
  }
}

export function packet(type: number, ...parts: Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  const head = Buffer.alloc(5);
  head.writeUInt32BE(body.length + 1, 0);
  head.writeUInt8(type, 4);
  return Buffer.concat([head, body]);
}

export function uint64(value: number | bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt.asUintN(64, BigInt(value)));
  return bytes;
}

/** Names are bytes; inside this server they are strings with one character a byte. */
export function string(value: string | Buffer): Buffer {
  const bytes = typeof value === 'string' ? Buffer.from(value, 'latin1') : value;
  return Buffer.concat([uint32(bytes.length), bytes]);
}

export function versionReply(): Buffer {
  return packet(types.version, uint32(3), ...extensions.flat().map((text) => string(text)));
}

export function ok(id: number): Buffer {
  return statusReply(id, code.ok, 'Success');
}

export function endOfFile(id: number): Buffer {
  return statusReply(id, code.eof, 'End of file');
}

/** What an error says to the client. */
export function status(id: number, error: unknown): Buffer {
  if (error instanceof SftpError) return statusReply(id, error.code, error.message);
  // A string that reaches past its packet, or an unfit offset.
  if (error instanceof RangeError) return statusReply(id, code.badMessage, 'Bad message');
  switch ((error as NodeJS.ErrnoException).code) {
    case 'ENOENT':
    case 'ENOTDIR':
    case 'EBADF':
    case 'ELOOP':
      return statusReply(id, code.noSuchFile, 'No such file');
    case 'EPERM':
    case 'EACCES':
    case 'EFAULT':
      return statusReply(id, code.denied, 'Permission denied');
    default:
      return statusReply(id, code.failure, 'Failure');
  }
}

function statusReply(id: number, value: number, message: string): Buffer {
  return packet(types.status, uint32(id), uint32(value), string(message), string('en'));
}

export function handleReply(id: number, handle: number): Buffer {
  return packet(types.handle, uint32(id), string(uint32(handle)));
}

export function dataReply(id: number, data: Buffer): Buffer {
  return packet(types.data, uint32(id), uint32(data.length), data);
}

export function attrsReply(id: number, stats: Stats): Buffer {
  return packet(types.attrs, uint32(id), attributes(stats));
}

export function extendedReply(id: number, values: (number | bigint)[]): Buffer {
  return packet(types.extended, uint32(id), ...values.map(uint64));
}

export interface Name {
  name: string;
  longName?: string;
  stats?: Stats;
}

export function namesReply(id: number, names: Name[]): Buffer {
  const parts = names.flatMap(({ name, longName, stats }) => [
    string(name),
    string(longName ?? name),
    stats ? attributes(stats) : uint32(0),
  ]);
  return packet(types.name, uint32(id), uint32(names.length), ...parts);
}
