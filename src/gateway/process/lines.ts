/** A connection that carries one JSON object a line, both ways. No input, and no missing input, of the peer harms this process. */
import type { Socket } from 'node:net';
import { messageOf } from '../../lib/error-message.ts';
import { lineOf } from './messages.ts';

/** The longest message has the IDs of all sessions of a process. */
const longestLine = 4 * 1024 * 1024;
/** Limit on unsent bytes: a peer that does not read is disconnected; what it needs is sent again on its next connection. */
const mostUnsent = 32 * 1024 * 1024;

export interface Lines<Out> {
  /** False when the connection is gone, or the peer does not read. */
  send(message: Out): boolean;
  unsent(): number;
  close(): void;
}

export interface LinesOptions<In> {
  /** Parses a line; undefined skips it. Throws when it is no message, which ends the connection. */
  read(line: string): In | undefined;
  /** Exceptions thrown in it are reported to `onFault`, and end nothing. */
  onMessage(message: In): void;
  /** Called once. `fault`: the reason why this side ended the connection. */
  onClose(fault?: string): void;
  onFault(error: unknown): void;
}

export function openLines<In, Out extends object>(socket: Socket, options: LinesOptions<In>): Lines<Out> {
  let parts: Buffer[] = [];
  let length = 0;
  let fault: string | undefined;

  const end = (why?: string) => {
    fault ??= why;
    socket.destroy();
  };
  socket.on('data', (chunk: Buffer) => {
    let from = 0;
    for (let at = chunk.indexOf(10); at >= 0 && !socket.destroyed; at = chunk.indexOf(10, from)) {
      const line = Buffer.concat([...parts, chunk.subarray(from, at)]).toString('utf8');
      parts = [];
      length = 0;
      from = at + 1;
      handle(line, options, end);
    }
    if (socket.destroyed) return;
    length += chunk.length - from;
    if (length > longestLine) return end(`a line longer than ${longestLine} bytes`);
    if (from < chunk.length) parts.push(chunk.subarray(from));
  });
  // An `error` event is followed by `close`, which handles it.
  socket.on('error', () => {});
  socket.once('end', () => end());
  socket.once('close', () => options.onClose(fault));
  return {
    send(message) {
      if (socket.destroyed || !socket.writable) return false;
      if (socket.writableLength > mostUnsent) {
        end('the peer does not read');
        return false;
      }
      socket.write(lineOf(message));
      return true;
    },
    unsent: () => socket.writableLength,
    close: () => end(),
  };
}

function handle<In>(
  line: string,
  { read, onMessage, onFault }: LinesOptions<In>,
  end: (why: string) => void,
) {
  let message: In | undefined;
  try {
    message = read(line);
  } catch (error) {
    return end(messageOf(error));
  }
  try {
    if (message !== undefined) onMessage(message);
  } catch (error) {
    onFault(error);
  }
}
