/**
 * The built-in sftp server: one client on standard input and output, SFTP version 3 as OpenSSH speaks it. It
 * stands in where the machine has no sftp-server. One process serves one session and answers in order, so its
 * file calls are synchronous, as in OpenSSH's own.
 */

import { WireReader } from '../../../../ssh/wire.ts';
import { createHandlers } from './sftp/handlers.ts';
import { maxPacket, status, versionReply } from './sftp/reply.ts';

const init = 1;
const slack = 1024;

/** Serves until the input ends. Given numbers, drops root's rights for theirs first. */
export function serveSftp(account: { uid: number; gid: number } | undefined): void {
  if (account) become(account);
  process.umask(0o022);
  const home = process.env['HOME'];
  try {
    if (home) process.chdir(home);
  } catch {
    // Without a home, relative paths begin at the root.
  }

  const handle = createHandlers();
  let rest: Buffer = Buffer.alloc(0);
  process.stdout.on('error', () => process.exit(0));
  process.stdout.on('drain', () => process.stdin.resume());
  process.stdin.on('end', () => {
    process.exitCode = 0;
  });
  process.stdin.on('data', (chunk: Buffer) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    while (rest.length >= 4) {
      const size = rest.readUInt32BE(0);
      if (size < 1 || size > maxPacket + slack) process.exit(1);
      if (rest.length < 4 + size) break;
      const packet = rest.subarray(4, 4 + size);
      rest = rest.subarray(4 + size);
      if (!process.stdout.write(answer(handle, packet))) process.stdin.pause();
    }
  });
}

function answer(handle: ReturnType<typeof createHandlers>, packet: Buffer): Buffer {
  const reader = new WireReader(packet);
  const type = reader.byte();
  if (type === init) return versionReply();
  if (reader.left < 4) process.exit(1);
  const id = reader.uint32();
  try {
    return handle(type, id, reader);
  } catch (error) {
    return status(id, error);
  }
}

function become({ uid, gid }: { uid: number; gid: number }): void {
  if (!(Number.isInteger(uid) && Number.isInteger(gid) && uid >= 1 && gid >= 1)) process.exit(1);
  process.setgroups?.([]);
  process.setgid?.(gid);
  process.setuid?.(uid);
  if (process.getuid?.() !== uid || process.getgid?.() !== gid || process.geteuid?.() !== uid)
    process.exit(1);
}
