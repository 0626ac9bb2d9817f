/** File attributes of SFTP version 3. */
import { constants as fs, type Stats } from 'node:fs';
import type { WireReader } from '../../../../../ssh/wire.ts';

const flag = { size: 1, owner: 2, permissions: 4, times: 8, extended: 0x80000000 };

export interface Attributes {
  size?: number;
  owner?: { uid: number; gid: number };
  permissions?: number;
  times?: { access: number; modified: number };
}

export function attributes(stats: Stats): Buffer {
  const bytes = Buffer.alloc(32);
  bytes.writeUInt32BE(flag.size | flag.owner | flag.permissions | flag.times, 0);
  bytes.writeBigUInt64BE(BigInt(stats.size), 4);
  bytes.writeUInt32BE(stats.uid, 12);
  bytes.writeUInt32BE(stats.gid, 16);
  bytes.writeUInt32BE(stats.mode, 20);
  bytes.writeUInt32BE(seconds(stats.atimeMs), 24);
  bytes.writeUInt32BE(seconds(stats.mtimeMs), 28);
  return bytes;
}

const seconds = (milliseconds: number) => Math.min(0xffffffff, Math.max(0, Math.floor(milliseconds / 1000)));

export function readAttributes(reader: WireReader): Attributes {
  const flags = reader.uint32();
  const result: Attributes = {};
  if (flags & flag.size) result.size = Number(reader.uint64());
  if (flags & flag.owner) result.owner = { uid: reader.uint32(), gid: reader.uint32() };
  if (flags & flag.permissions) result.permissions = reader.uint32() & 0o7777;
  if (flags & flag.times) result.times = { access: reader.uint32(), modified: reader.uint32() };
  return result;
}

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const halfAYear = 182 * 24 * 3600 * 1000;

/** A line as `ls -l` prints it: what sftp clients show for `ls -l`. */
export function longName(name: string, stats: Stats, now: number): string {
  const date = stats.mtime;
  const recent = Math.abs(now - stats.mtimeMs) < halfAYear;
  const clock = `${two(date.getHours())}:${two(date.getMinutes())}`;
  const when = `${months[date.getMonth()]} ${String(date.getDate()).padStart(2)} ${recent ? clock : ` ${date.getFullYear()}`}`;
  const columns = [
    modeText(stats.mode),
    String(stats.nlink).padStart(4),
    String(stats.uid).padEnd(8),
    String(stats.gid).padEnd(8),
    String(stats.size).padStart(8),
    when,
    name,
  ];
  return columns.join(' ');
}

const two = (value: number) => String(value).padStart(2, '0');

function modeText(mode: number): string {
  const kinds: Record<number, string> = {
    [fs.S_IFDIR]: 'd',
    [fs.S_IFLNK]: 'l',
    [fs.S_IFCHR]: 'c',
    [fs.S_IFBLK]: 'b',
    [fs.S_IFIFO]: 'p',
    [fs.S_IFSOCK]: 's',
  };
  const triple = (bits: number, special: boolean, letter: string) => {
    const execute = bits & 1 ? (special ? letter : 'x') : special ? letter.toUpperCase() : '-';
    return `${bits & 4 ? 'r' : '-'}${bits & 2 ? 'w' : '-'}${execute}`;
  };
  return [
    kinds[mode & fs.S_IFMT] ?? '-',
    triple(mode >> 6, (mode & 0o4000) !== 0, 's'),
    triple(mode >> 3, (mode & 0o2000) !== 0, 's'),
    triple(mode, (mode & 0o1000) !== 0, 't'),
  ].join('');
}
