/**
 * The one file that knows ssh2's inside (1.17.0, pinned). ssh2 does the key exchange, the ciphers and the
 * authentication. Every message of the connection protocol (types 80 and up) comes to us as it is: ssh2's own
 * channels send EOF and CLOSE together, mix up stdout and stderr when a window fills, refuse terminal modes
 * they do not know and ignore how full the socket is.
 */
import type { Socket } from 'node:net';
import type { Connection } from 'ssh2';
import { SSH } from '../../../../ssh/message-numbers.ts';

/** What we send with: methods of ssh2's protocol object, each of which writes one message. */
export interface Transport {
  requestFailure(): void;
  channelOpenConfirm(remote: number, local: number, window: number, maxPacket: number): void;
  channelOpenFail(remote: number, reason: number, description: string): void;
  channelData(remote: number, data: Buffer): void;
  channelExtData(remote: number, data: Buffer, type: number): void;
  channelWindowAdjust(remote: number, amount: number): void;
  channelEOF(remote: number): void;
  channelClose(remote: number): void;
  channelSuccess(remote: number): void;
  channelFailure(remote: number): void;
  exitStatus(remote: number, status: number): void;
  /** Throws when the signal has no name in RFC 4254. */
  exitSignal(remote: number, signal: string, coreDumped: boolean, message: string): void;
}

interface Protocol extends Transport {
  _onPayload: (payload: Buffer) => unknown;
  _onPacket: () => void;
}

interface Inside {
  _protocol: Protocol;
  _sock: Socket;
}

/**
 * Routes the connection protocol of a client to `onMessage`. Call it while ssh2 emits `connection`: the
 * ciphers take the handler over at the first key exchange. What `onMessage` throws ends the connection.
 */
export function takeOver(
  client: Connection,
  onMessage: (message: Buffer) => void,
): { transport: Transport; socket: Socket } {
  const { _protocol: protocol, _sock: socket } = client as unknown as Inside;
  const inner = protocol._onPayload;
  protocol._onPayload = (payload) => {
    if ((payload[0] ?? 0) < SSH.GLOBAL_REQUEST) return inner(payload);
    protocol._onPacket();
    onMessage(payload);
  };
  return { transport: protocol, socket };
}
