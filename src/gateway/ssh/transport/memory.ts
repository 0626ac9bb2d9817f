/**
 * Pooled buffers for data that is read and passed on. A read of 64 KiB into fresh memory costs more than decrypting
 * it: a third of a copy's time went into garbage collection. So pieces of memory are reused. Each counts its holders:
 * the reader or packet it was taken for, and every write that has not reached the kernel. The last release frees it.
 *
 * To keep bytes after the call that delivered them without being a holder, keep a copy (`toKeep`).
 */

/** The size of every piece: 128 KiB copies faster, but triples the latency of a keystroke during copies. */
export const PIECE = 64 * 1024;
/** Shorter data is not worth a whole piece. */
export const LARGE = PIECE / 4;
/** Limit on free pieces that are kept for the next reads. */
const MOST_FREE = 64;

interface Piece {
  readonly memory: Buffer;
  holders: number;
}

const free: Piece[] = [];
const pieces = new WeakMap<ArrayBufferLike, Piece>();

/** Allocates `length` bytes, held by the caller; fresh memory where a piece would be too small, or far too large. */
export function take(length: number): Buffer {
  if (length < LARGE || length > PIECE) return Buffer.allocUnsafe(length);
  const piece = free.pop() ?? makePiece();
  piece.holders = 1;
  return piece.memory.subarray(0, length);
}

function makePiece(): Piece {
  const memory = Buffer.allocUnsafeSlow(PIECE);
  const piece = { memory, holders: 0 };
  pieces.set(memory.buffer, piece);
  return piece;
}

/** Adds a holder to the piece that contains these bytes. Does nothing for bytes in no piece. */
export function hold(bytes: Buffer): void {
  const piece = pieces.get(bytes.buffer);
  if (piece) piece.holders += 1;
}

export function release(bytes: Buffer): void {
  const piece = pieces.get(bytes.buffer);
  if (!piece) return;
  // Otherwise two readers would write to it at once.
  if (piece.holders < 1) throw new Error('a piece of memory was released twice');
  piece.holders -= 1;
  if (piece.holders === 0 && free.length < MOST_FREE) free.push(piece);
}

/** Number of holders of the piece; 0 for bytes in no piece. */
export function holders(bytes: Buffer): number {
  return pieces.get(bytes.buffer)?.holders ?? 0;
}

/** The same bytes in memory that is not reused: a copy where they are in a piece. */
export function toKeep(bytes: Buffer): Buffer {
  return pieces.has(bytes.buffer) ? Buffer.from(bytes) : bytes;
}
