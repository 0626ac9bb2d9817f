/**
 * Writes to a socket what the kernel takes at once. Node's streams do the same in the end, at several times the cost of the
 * system call, which every key that a person presses paid twice.
 */
import { writeSync, writevSync } from 'node:fs';
import type { Socket } from 'node:net';

/**
 * Returns how many bytes the kernel took: all, some, or none. None while anything waits in the socket, which keeps its order;
 * where Node does not show the file descriptor; and at errors, which the socket itself reports when it writes.
 */
export function writeNow(socket: Socket, pieces: readonly Buffer[]): number {
  const { fd = -1 } = (socket as { _handle?: { fd?: number } | null })._handle ?? {};
  if (fd < 0 || socket.connecting || socket.writableLength > 0) return 0;
  try {
    const [only] = pieces;
    return pieces.length === 1 && only ? writeSync(fd, only) : writevSync(fd, pieces);
  } catch {
    // Mostly EAGAIN: it is full.
    return 0;
  }
}
