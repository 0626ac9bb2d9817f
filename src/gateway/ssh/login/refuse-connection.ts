/** Refuses a connection with a reason, at the cost of one write. */
import type { Socket } from 'node:net';
import { DISCONNECT } from '../../../lib/ssh/wire.ts';
import { disconnectMessage } from '../messages.ts';
import type { Barrier } from '../transport/barrier.ts';
import { IDENT, type Transport } from '../transport/transport.ts';
import type { End } from '../transport/transport-options.ts';
import { type Refusal, tooMany } from './admission.ts';

/** Limit on refused connections that get time to read the reason; more are cut off, so that a flood holds no sockets open. */
const maxLingering = 256;
let lingering = 0;

/** Sends our version and a disconnect (RFC 4253, section 11.1), before any encryption, and closes. The caller handles socket errors. */
export function refuseConnection(socket: Socket, text: string, lingerMs: number, barrier: Barrier): void {
  if (lingering >= maxLingering || text === '') {
    socket.destroy();
    return;
  }
  lingering += 1;
  const timer = barrier.after(lingerMs, () => socket.destroy());
  socket.on(
    'close',
    barrier.guard(() => {
      clearTimeout(timer);
      lingering -= 1;
    }),
  );
  socket.end(Buffer.concat([Buffer.from(`SSH-2.0-${IDENT}\r\n`), plainPacket(text)]));
  socket.resume();
}

/** The refusal of a connection that ended before its login, by us or by a protocol error, with the client's software or offer. */
export function asRefusal({ by, text }: End, { software, greeting }: Transport): Refusal {
  const isProxied = ['PROXY ', '\r\n\r\n\0'].some((head) => greeting.startsWith(head));
  if (isProxied) return { reason: 'unexpected PROXY header', text, detail: greeting };
  const fault = text.includes('no matching') ? 'no common algorithm' : 'protocol error';
  return { reason: by === 'us' ? tooMany.reason : fault, text, detail: `${software || greeting}: ${text}` };
}

/** A disconnect packet without encryption: a multiple of eight bytes, with at least four of padding. */
function plainPacket(text: string): Buffer {
  const payload = disconnectMessage(DISCONNECT.TOO_MANY_CONNECTIONS, text);
  const padding = 4 + ((8 - ((payload.length + 9) % 8)) % 8);
  const head = Buffer.alloc(5);
  head.writeUInt32BE(payload.length + padding + 1);
  head.writeUInt8(padding, 4);
  return Buffer.concat([head, payload, Buffer.alloc(padding)]);
}
