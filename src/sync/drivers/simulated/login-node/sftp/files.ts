/** Names and whole-file operations of the sftp server. A name is a string with one character for each byte. */
import * as fs from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { type Attributes, longName } from './attributes.ts';
import { code, type Name, SftpError } from './reply.ts';

const namesAtOnce = 100;

export const toName = (bytes: Buffer): string => bytes.toString('latin1');

/** An empty name means the directory one is in, as OpenSSH has it. */
export const toBytes = (name: string): Buffer => Buffer.from(name === '' ? '.' : name, 'latin1');

/** The absolute name; its last part need not exist. */
export function real(name: string): string {
  const absolute = resolve(toName(Buffer.from(process.cwd())), name);
  try {
    return realExisting(absolute);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return join(realExisting(dirname(absolute)), basename(absolute));
  }
}

function realExisting(name: string): string {
  return toName(fs.realpathSync.native(toBytes(name), { encoding: 'buffer' }));
}

/** `~` and `~/…`; another person's home is not looked up. */
export function expand(name: string): string {
  if (name !== '~' && !name.startsWith('~/')) return name;
  return join(toName(Buffer.from(process.env['HOME'] ?? '/')), name.slice(1));
}

/** Never over an existing file: that is what version 3 asks of a rename. */
export function rename(from: string, to: string): void {
  const [source, target] = [toBytes(from), toBytes(to)];
  if (fs.lstatSync(target, { throwIfNoEntry: false })) throw new SftpError(code.failure, 'Failure');
  if (!fs.lstatSync(source).isFile()) {
    fs.renameSync(source, target);
    return;
  }
  try {
    // A link fails when the target appears in between, where a rename would replace it.
    fs.linkSync(source, target);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw error;
    fs.renameSync(source, target);
    return;
  }
  fs.unlinkSync(source);
}

export function change(name: string, { size, owner, permissions, times }: Attributes): void {
  const path = toBytes(name);
  if (size !== undefined) fs.truncateSync(path, size);
  if (permissions !== undefined) fs.chmodSync(path, permissions);
  if (times) fs.utimesSync(path, times.access, times.modified);
  if (owner) fs.chownSync(path, owner.uid, owner.gid);
}

export function changeOpen(fd: number, { size, owner, permissions, times }: Attributes): void {
  if (size !== undefined) fs.ftruncateSync(fd, size);
  if (permissions !== undefined) fs.fchmodSync(fd, permissions);
  if (times) fs.futimesSync(fd, times.access, times.modified);
  if (owner) fs.fchownSync(fd, owner.uid, owner.gid);
}

export interface Listing {
  /** The next entries; none at the end. */
  next(): Name[];
}

export function list(directory: string): Listing {
  const names = fs.readdirSync(toBytes(directory), { encoding: 'buffer' }).map(toName);
  const all = ['.', '..', ...names];
  let at = 0;
  return {
    next() {
      const entries: Name[] = [];
      while (at < all.length && entries.length < namesAtOnce) {
        const name = all[at++] ?? '';
        try {
          const stats = fs.lstatSync(toBytes(`${directory || '.'}/${name}`));
          entries.push({ name, longName: longName(name, stats, Date.now()), stats });
        } catch {
          // It was removed in the meantime.
        }
      }
      return entries;
    },
  };
}
