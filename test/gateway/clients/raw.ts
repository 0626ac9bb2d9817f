/** A client that sends any message when it likes, logged in, and keeps what it hears in order. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { defaultLimits } from '../../../src/gateway/ssh/limits.ts';
import { offerToNode } from '../../../src/gateway/ssh/transport/algorithms.ts';
import { createBarrier } from '../../../src/gateway/ssh/transport/barrier.ts';
import { readPrivateKey } from '../../../src/gateway/ssh/transport/ssh2.ts';
import { Transport } from '../../../src/gateway/ssh/transport/transport.ts';
import { signatureBlob, signedData } from '../../../src/lib/ssh/public-key.ts';
import { message, SSH, sshString, WireReader } from '../../../src/lib/ssh/wire.ts';
import { type Lab, LOGIN } from '../lab.ts';
import { until } from './nodes.ts';

export interface RawClient {
  transport: Transport;
  /** Every message so far, first to last. */
  heard: Buffer[];
  types(): (number | undefined)[];
  /** The first message of this type that has not been asked for yet. */
  next(type: number): Promise<Buffer>;
  /** Opens a session; resolves to the number that messages to it carry. */
  openSession(number: number, window?: number): Promise<number>;
  ended(): string;
  close(): void;
}

/** Logged in. */
export async function rawClient(lab: Lab): Promise<RawClient> {
  const client = await rawUnauthenticated(lab);
  await logIn(client, lab);
  return client;
}

/** After the key exchange, before any login; `localAddress` is where it comes from. */
export async function rawUnauthenticated(lab: Lab, localAddress = '127.0.0.1'): Promise<RawClient> {
  const heard: Buffer[] = [];
  let ended = '';
  const transport = await new Promise<Transport>((resolve) => {
    const made: Transport = new Transport({
      barrier: createBarrier(),
      socket: connect({ port: lab.gateway.port, host: '127.0.0.1', localAddress }),
      offer: offerToNode('aes128-gcm@openssh.com'),
      verifyHostKey: () => true,
      // It may send what it likes: what bounds that is not its own.
      limits: { ...defaultLimits, backlogBytes: 2 ** 30, backlogHardBytes: 2 ** 30 },
      onReady: () => resolve(made),
    });
    made.onMessage = (payload) => heard.push(Buffer.from(payload));
    made.onEnd = (end) => {
      ended = end.text || end.by;
    };
  });
  // Its own bounds are not what is tested.
  transport.trust();
  const asked = new Map<number, number>();
  const client: RawClient = {
    transport,
    heard,
    types: () => heard.map((payload) => payload[0]),
    async next(type) {
      const index = asked.get(type) ?? 0;
      asked.set(type, index + 1);
      const found = () => heard.filter((payload) => payload[0] === type)[index];
      await until(
        () => found() !== undefined || ended !== '',
        () => `a message ${type} came after ${client.types()}`,
      );
      const message = found();
      assert.ok(message, `the connection ended: ${ended}`);
      return message;
    },
    async openSession(number, window = 1 << 21) {
      const sizes = [{ uint32: window }, { uint32: 32_768 }];
      transport.send(message(SSH.CHANNEL_OPEN, 'session', { uint32: number }, ...sizes));
      const confirmed = await client.next(SSH.CHANNEL_OPEN_CONFIRMATION);
      assert.equal(confirmed.readUInt32BE(1), number);
      return confirmed.readUInt32BE(5);
    },
    ended: () => ended,
    close: () => transport.close(11, 'done', 100),
  };
  return client;
}

async function logIn({ transport, next }: RawClient, lab: Lab): Promise<void> {
  transport.send(message(SSH.SERVICE_REQUEST, 'ssh-userauth'));
  const key = readPrivateKey(readFileSync(join(lab.dir, 'user'), 'utf8'));
  const how = ['ssh-connection', 'publickey', true, 'ssh-ed25519', key.getPublicSSH()] as const;
  const request = message(SSH.USERAUTH_REQUEST, LOGIN, ...how);
  const signature = key.sign(signedData(transport.sessionId, request));
  assert.ok(Buffer.isBuffer(signature));
  transport.send(Buffer.concat([request, sshString(signatureBlob(signature))]));
  await next(SSH.USERAUTH_SUCCESS);
}

export const exec = (to: number, command: string, wantsReply = true) =>
  message(SSH.CHANNEL_REQUEST, { uint32: to }, 'exec', wantsReply, command);

export const data = (to: number, bytes: string | Buffer) => message(SSH.CHANNEL_DATA, { uint32: to }, bytes);

export const eof = (to: number) => message(SSH.CHANNEL_EOF, { uint32: to });

/** The name of a channel request. */
export const requestName = (payload: Buffer) => new WireReader(payload, 5).text();
