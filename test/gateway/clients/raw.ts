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
import { becomes } from '../../support/app.ts';
import { type Lab, LOGIN } from '../lab.ts';

export type RawClient = Awaited<ReturnType<typeof rawUnauthenticated>>;

/** Logged in. */
export async function rawClient(lab: Lab): Promise<RawClient> {
  const client = await rawUnauthenticated(lab);
  client.transport.send(message(SSH.SERVICE_REQUEST, 'ssh-userauth'));
  client.transport.send(proof(client, lab));
  await client.next(SSH.USERAUTH_SUCCESS);
  return client;
}

/** After the key exchange, before any login. */
export async function rawUnauthenticated(lab: { gateway: { port: number } }) {
  /** Every message so far, first to last. */
  const heard: Buffer[] = [];
  let ended = '';
  const socket = connect(lab.gateway.port, '127.0.0.1');
  const transport = await new Promise<Transport>((resolve) => {
    const made: Transport = new Transport({
      barrier: createBarrier(),
      socket,
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
  const types = () => heard.map((payload) => payload[0]);
  /** The first message of this type that has not been asked for yet. */
  const next = async (type: number) => {
    const index = asked.get(type) ?? 0;
    asked.set(type, index + 1);
    const found = () => heard.filter((payload) => payload[0] === type)[index];
    await becomes(() => found() !== undefined || ended !== '', true);
    const message = found();
    assert.ok(message, `no message ${type} came after ${types()}; the connection ended: ${ended}`);
    return message;
  };
  /** Opens a session; resolves to the number that messages to it carry. */
  const openSession = async (number: number, window = 1 << 21) => {
    const sizes = [{ uint32: window }, { uint32: 32_768 }];
    transport.send(message(SSH.CHANNEL_OPEN, 'session', { uint32: number }, ...sizes));
    const confirmed = await next(SSH.CHANNEL_OPEN_CONFIRMATION);
    assert.equal(confirmed.readUInt32BE(1), number);
    return confirmed.readUInt32BE(5);
  };
  const close = () => transport.close(11, 'done', 100);
  return { transport, socket, heard, types, next, openSession, ended: () => ended, close };
}

/** The request for a login with the signature of a key, the person's unless it is another. */
export function proof({ transport }: RawClient, lab: Lab, file: string = join(lab.dir, 'user')): Buffer {
  const key = readPrivateKey(readFileSync(file, 'utf8'));
  const how = ['ssh-connection', 'publickey', true, 'ssh-ed25519', key.getPublicSSH()] as const;
  const request = message(SSH.USERAUTH_REQUEST, LOGIN, ...how);
  const signature = key.sign(signedData(transport.sessionId, request));
  assert.ok(Buffer.isBuffer(signature));
  return Buffer.concat([request, sshString(signatureBlob(signature))]);
}

export const exec = (to: number, command: string, wantsReply = true) =>
  message(SSH.CHANNEL_REQUEST, { uint32: to }, 'exec', wantsReply, command);

export const data = (to: number, bytes: string | Buffer) => message(SSH.CHANNEL_DATA, { uint32: to }, bytes);

export const eof = (to: number) => message(SSH.CHANNEL_EOF, { uint32: to });

/** The name of a channel request. */
export const requestName = (payload: Buffer) => new WireReader(payload, 5).text();

/** A packet as it is before there are keys. */
export function packet(payload: Buffer): Buffer {
  const padding = 4 + ((8 - ((payload.length + 9) % 8)) % 8);
  const head = Buffer.alloc(5);
  head.writeUInt32BE(payload.length + padding + 1);
  head.writeUInt8(padding, 4);
  return Buffer.concat([head, payload, Buffer.alloc(padding)]);
}
