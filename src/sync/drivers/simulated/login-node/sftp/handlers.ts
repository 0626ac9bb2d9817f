/** What the sftp server does for each request. Every handler throws what status() turns into an answer. */
import * as fs from 'node:fs';
import type { WireReader } from '../../../../../ssh/wire.ts';
import { readAttributes } from './attributes.ts';
import { change, changeOpen, expand, type Listing, list, real, rename, toBytes, toName } from './files.ts';
import { createHandles } from './handles.ts';
import * as reply from './reply.ts';

const openFlag = { read: 1, write: 2, append: 4, create: 8, truncate: 16, exclusive: 32 };

type Handler = (id: number, reader: WireReader) => Buffer;

type Files = ReturnType<typeof createHandles<{ fd: number; append: boolean }>>;
type Handlers = Record<string, Handler>;

/** The dispatcher for one session, which holds its open files. */
export function createHandlers(): (type: number, id: number, reader: WireReader) => Buffer {
  const files: Files = createHandles((file) => fs.closeSync(file.fd));
  const handlers = { ...pathHandlers, ...handleHandlers(files) };
  const extended = extendedHandlers(files);
  return (type, id, reader) => {
    const handler = type === extendedRequest ? extended[reader.text()] : handlers[type];
    if (!handler) throw new reply.SftpError(reply.code.unsupported, 'Operation unsupported');
    return handler(id, reader);
  };
}

const extendedRequest = 200;
const name = (reader: WireReader) => toName(reader.bytes());
const path = (reader: WireReader) => toBytes(name(reader));

/** A request that is answered with its success only. */
function done(action: (reader: WireReader) => void): Handler {
  return (id, reader) => {
    action(reader);
    return reply.ok(id);
  };
}

const pathHandlers: Handlers = {
  7: (id, reader) => reply.attrsReply(id, fs.lstatSync(path(reader))),
  9: done((reader) => change(name(reader), readAttributes(reader))),
  13: done((reader) => fs.unlinkSync(path(reader))),
  14: done((reader) => fs.mkdirSync(path(reader), readAttributes(reader).permissions ?? 0o777)),
  15: done((reader) => fs.rmdirSync(path(reader))),
  16: (id, reader) => reply.namesReply(id, [{ name: real(name(reader)) }]),
  17: (id, reader) => reply.attrsReply(id, fs.statSync(path(reader))),
  18: done((reader) => rename(name(reader), name(reader))),
  19: (id, reader) => {
    const target = fs.readlinkSync(path(reader), { encoding: 'buffer' });
    return reply.namesReply(id, [{ name: toName(target) }]);
  },
  // OpenSSH sends the target first, against the draft, and everyone follows it.
  20: done((reader) => fs.symlinkSync(reader.bytes(), path(reader))),
};

/** Requests that open, use or close a handle. */
function handleHandlers(files: Files): Handlers {
  const listings = createHandles<Listing>(() => undefined);
  return {
    3: (id, reader) => {
      const file = path(reader);
      const flags = reader.uint32();
      const { permissions } = readAttributes(reader);
      const fd = fs.openSync(file, systemFlags(flags), permissions ?? 0o666);
      return reply.handleReply(id, files.add({ fd, append: (flags & openFlag.append) !== 0 }));
    },
    4: done((reader) => {
      const handle = reader.bytes();
      if (!files.close(handle) && !listings.close(handle)) fail();
    }),
    5: (id, reader) => {
      const { fd } = files.get(reader.bytes()) ?? fail();
      const position = reader.uint64();
      const data = Buffer.allocUnsafe(Math.min(reader.uint32(), reply.maxData));
      const size = fs.readSync(fd, data, 0, data.length, position);
      if (size === 0 && data.length > 0) return reply.endOfFile(id);
      return reply.dataReply(id, data.subarray(0, size));
    },
    6: done((reader) => {
      const { fd, append } = files.get(reader.bytes()) ?? fail();
      const position = Number(reader.uint64());
      writeAll(fd, reader.bytes(), append ? null : position);
    }),
    8: (id, reader) => reply.attrsReply(id, fs.fstatSync((files.get(reader.bytes()) ?? fail()).fd)),
    10: done((reader) => changeOpen((files.get(reader.bytes()) ?? fail()).fd, readAttributes(reader))),
    11: (id, reader) => reply.handleReply(id, listings.add(list(name(reader)))),
    12: (id, reader) => {
      const names = (listings.get(reader.bytes()) ?? fail()).next();
      return names.length === 0 ? reply.endOfFile(id) : reply.namesReply(id, names);
    },
  };
}

function extendedHandlers(files: Files): Handlers {
  return {
    'posix-rename@openssh.com': done((reader) => fs.renameSync(path(reader), path(reader))),
    'hardlink@openssh.com': done((reader) => fs.linkSync(path(reader), path(reader))),
    'fsync@openssh.com': done((reader) => fs.fsyncSync((files.get(reader.bytes()) ?? fail()).fd)),
    'limits@openssh.com': (id) =>
      reply.extendedReply(id, [reply.maxPacket, reply.maxData, reply.maxData, files.limit]),
    'expand-path@openssh.com': (id, reader) => reply.namesReply(id, [{ name: real(expand(name(reader))) }]),
    'statvfs@openssh.com': (id, reader) => {
      const { bsize, blocks, bfree, bavail, files: inodes, ffree } = fs.statfsSync(path(reader));
      return reply.extendedReply(id, [bsize, bsize, blocks, bfree, bavail, inodes, ffree, ffree, 0, 0, 255]);
    },
  };
}

function systemFlags(flags: number): number {
  const { O_RDONLY, O_WRONLY, O_RDWR, O_APPEND, O_CREAT, O_TRUNC, O_EXCL } = fs.constants;
  const write = (flags & openFlag.write) !== 0;
  const access = !write ? O_RDONLY : flags & openFlag.read ? O_RDWR : O_WRONLY;
  return (
    access |
    (flags & openFlag.append ? O_APPEND : 0) |
    (flags & openFlag.create ? O_CREAT : 0) |
    (flags & openFlag.truncate ? O_TRUNC : 0) |
    (flags & openFlag.exclusive ? O_EXCL : 0)
  );
}

function writeAll(fd: number, data: Buffer, position: number | null): void {
  for (let at = 0; at < data.length; ) {
    at += fs.writeSync(fd, data, at, data.length - at, position === null ? null : position + at);
  }
}

function fail(): never {
  throw new reply.SftpError(reply.code.failure, 'Invalid handle');
}
