import { code, SftpError } from './reply.ts';

const limit = 1000;
let next = 0;

/** Numbers for what a client has open. Numbers are never used twice, so a stale one finds nothing. */
export function createHandles<T>(release: (item: T) => void) {
  const items = new Map<number, T>();
  const key = (handle: Buffer) => (handle.length === 4 ? handle.readUInt32BE(0) : -1);
  return {
    limit,
    add(item: T): number {
      if (items.size >= limit) {
        release(item);
        throw new SftpError(code.failure, 'Too many open files');
      }
      items.set(next, item);
      return next++;
    },
    get: (handle: Buffer): T | undefined => items.get(key(handle)),
    close(handle: Buffer): boolean {
      const item = items.get(key(handle));
      if (item === undefined) return false;
      items.delete(key(handle));
      release(item);
      return true;
    },
  };
}
