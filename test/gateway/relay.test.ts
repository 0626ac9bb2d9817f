/** What a login node sends late for a channel that is being closed, or is no more. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defaultLimits } from '../../src/gateway/ssh/limits.ts';
import { Relay } from '../../src/gateway/ssh/relay/relay.ts';
import { createHostKeys } from '../../src/gateway/ssh/transport/host-keys.ts';
import { readPrivateKey } from '../../src/gateway/ssh/transport/ssh2.ts';
import type { Transport } from '../../src/gateway/ssh/transport/transport.ts';
import { generateSshKey } from '../../src/lib/ssh/public-key.ts';
import { message, SSH } from '../../src/lib/ssh/wire.ts';

function side() {
  const got: (number | undefined)[] = [];
  const made = {
    onMessage: (_: Buffer): void => {},
    forward: (_: Transport, [type]: Buffer) => void got.push(type),
    send: ([type]: Buffer) => void got.push(type),
  };
  return { made, got, says: (...of: Parameters<typeof message>) => made.onMessage(message(...of)) };
}

test('a login node that says more after its CLOSE ends no connection, and none of it is passed on', () => {
  const [client, node] = [side(), side()];
  new Relay({
    client: client.made as unknown as Transport,
    node: node.made as unknown as Transport,
    limits: defaultLimits,
    hostKeys: createHostKeys([readPrivateKey(generateSshKey().privateKey)]),
    route: () => undefined,
    onRefusal: () => {},
    onUse: () => {},
  });
  const [ofClient, ofNode, size] = [{ uint32: 3 }, { uint32: 8 }, { uint32: 1000 }];
  client.says(SSH.CHANNEL_OPEN, 'session', ofClient, size, size);
  node.says(SSH.CHANNEL_OPEN_CONFIRMATION, ofClient, ofNode, size, size);
  node.says(SSH.CHANNEL_CLOSE, ofClient);
  node.says(SSH.CHANNEL_WINDOW_ADJUST, ofClient, size);
  node.says(SSH.CHANNEL_DATA, ofClient, 'late');
  node.says(SSH.CHANNEL_REQUEST, ofClient, 'exit-status', false, { uint32: 0 });
  client.says(SSH.CHANNEL_CLOSE, ofNode);
  node.says(SSH.CHANNEL_WINDOW_ADJUST, ofClient, size);
  node.says(SSH.CHANNEL_SUCCESS, ofClient);
  assert.deepEqual(client.got, [SSH.CHANNEL_OPEN_CONFIRMATION, SSH.CHANNEL_CLOSE]);
  assert.throws(() => node.says(SSH.CHANNEL_DATA, { uint32: 4 }, 'to none'), /no such channel/);
});
