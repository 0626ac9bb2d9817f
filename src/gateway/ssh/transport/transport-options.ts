/** What a transport is made of, and how it ends. */
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { GatewayLimits } from '../limits.ts';
import type { Barrier } from './barrier.ts';
import type { Reads } from './reads.ts';
import type { Negotiated, Offer, PrivateKey } from './ssh2.ts';

/** What a transport runs over: a socket, or a stream within another connection. */
export type ByteStream = Duplex & { readonly connecting: boolean; setNoDelay(on: boolean): unknown };

export interface TransportOptions {
  socket: Socket | ByteStream;
  /** What the socket was connected with; an accepted one has none yet. */
  reads?: Reads;
  /** That of the connection which this belongs to. */
  barrier: Barrier;
  hostKey?: PrivateKey;
  /** Server: whether it says that it takes security keys. */
  securityKeys?: boolean | undefined;
  /** Client: what to offer and which host key to believe. */
  offer?: Offer;
  verifyHostKey?(blob: Buffer): boolean;
  limits: Pick<GatewayLimits, 'backlogBytes' | 'backlogHardBytes' | 'rekeyBytes' | 'rekeyGraceMs'>;
  /** Takes a handshake: milliseconds until it may go on. Left out: at once. */
  handshakeMs?(): number;
  onReady(negotiated: Negotiated): void;
}

/** Why a transport ended: the other side disconnected, the network failed, the other side broke the protocol, or we ended it. */
export interface End {
  by: 'peer' | 'network' | 'protocol' | 'us';
  text: string;
}
