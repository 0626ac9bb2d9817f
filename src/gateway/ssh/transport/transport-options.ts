/** Options of a transport, and the reasons for its end. */
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { GatewayLimits } from '../limits.ts';
import type { Barrier } from './barrier.ts';
import type { Reads } from './reads.ts';
import type { Negotiated, Offer, PrivateKey } from './ssh2.ts';

/** The stream under a transport: a socket, or a stream within another connection. */
export type ByteStream = Duplex & {
  readonly connecting: boolean;
  setNoDelay(on: boolean): unknown;
  destroySoon(): unknown;
};

export interface TransportOptions {
  socket: Socket | ByteStream;
  /** The reads that the socket was connected with; an accepted socket has none yet. */
  reads?: Reads;
  barrier: Barrier;
  hostKey?: PrivateKey;
  /** Server: announces support of security keys. */
  securityKeys?: boolean | undefined;
  /** Client: the offer, and the check of the host key. */
  offer?: Offer;
  verifyHostKey?(blob: Buffer): boolean;
  limits: Pick<GatewayLimits, 'backlogBytes' | 'backlogHardBytes' | 'rekeyBytes' | 'rekeyGraceMs'>;
  /** Takes a token for a handshake: milliseconds until it may go on. Left out: at once. */
  handshakeMs?(): number;
  onReady(negotiated: Negotiated): void;
}

/** The reason for the end of a transport: the other side disconnected or broke the protocol, the network failed, or we ended it. */
export interface End {
  by: 'peer' | 'network' | 'protocol' | 'us';
  text: string;
}
