/** Sessions to a login node that only a hop can reach: real sshds in a network of their own. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { askKey } from '../../src/gateway/ssh/login/ask-key.ts';
import { generateSshKey } from '../../src/lib/ssh/public-key.ts';
import { becomes } from '../support/app.ts';
import { type HopNetwork, noHopNetwork, openHopNetwork } from '../support/hop-network.ts';
import { unless } from '../support/unless.ts';
import { finished, type Lab, openLab, openSession } from './lab.ts';

const test = unless(noHopNetwork);

let lab: Lab;
let net: HopNetwork;
before(async () => {
  if (noHopNetwork) return;
  lab = await openLab();
  net = await openHopNetwork([readFileSync(join(lab.dir, 'client.pub'), 'utf8').trim()]);
  lab.route.loginNode = node();
});
after(async () => {
  await lab?.close();
  await net?.[Symbol.asyncDispose]();
});

const node = (changes = {}) => ({
  ...{ host: '127.0.0.5', port: net.nodePort, hostKey: net.nodeKey, via: net.hop },
  ...changes,
});
/** TCP connections of this machine to the hop. */
const connections = () => net.hopConnections();
const refusal = () => lab.events.findLast(({ event }) => event === 'gateway.login.refused');

test('a session, its copies and its forwards go through the hop to the login node', async () => {
  const ran = await lab.ssh(['gateway', 'echo $SSH_CONNECTION; wc -c; exit 3'], 'twelve bytes');
  assert.match(ran.out, / 127\.0\.0\.5 2222\n12\n$/);
  assert.deepEqual([ran.status, ran.err], [3, '']);
  const [from, there, back] = ['from', 'there', 'back'].map((name) => join(net.dir, name));
  writeFileSync(`${from}`, randomBytes(20_000_000));
  for (const [source, target] of [
    [`${from}`, `gateway:${there}`],
    [`gateway:${there}`, `${back}`],
  ] as const) {
    const copied = await lab.run('scp', [...lab.options, source, target]);
    assert.deepEqual([copied.status, copied.err], [0, '']);
  }
  assert.ok(readFileSync(`${from}`).equals(readFileSync(`${back}`)));
  await becomes(connections, 0);
});

test('two hops are gone through one after the other', async (t) => {
  const inner = { host: '127.0.0.7', port: net.nodePort, hostKey: net.nodeKey, via: net.hop };
  lab.route.loginNode = node({ via: inner });
  t.after(() => {
    lab.route.loginNode = node();
  });
  assert.match((await lab.ssh(['gateway', 'echo $SSH_CONNECTION'])).out, / 127\.0\.0\.5 2222\n$/);
  await becomes(connections, 0);
});

test('hop and login node each show their own key, and a refusal says which host it was', async (t) => {
  t.after(() => {
    lab.route.loginNode = node();
  });
  const other = generateSshKey().publicKey;
  for (const [loginNode, text, detail] of [
    [
      node({ hostKey: other }),
      /The login node shows a host key that is not the expected one/,
      /^(?!.*:22: )/,
    ],
    [
      node({ via: { ...net.hop, hostKey: other } }),
      /The host in front of the login node shows a host key/,
      /:22: /,
    ],
    [node({ port: 2 }), /The login node refuses connections/, /the hop says: Connection refused/],
    [
      node({ via: { ...net.hop, port: 2 } }),
      /The host in front of the login node refuses/,
      /:2: .*ECONNREFUSED/,
    ],
  ] as const) {
    lab.route.loginNode = loginNode;
    const { status, err } = await lab.ssh(['gateway', 'true']);
    assert.equal(status, 255);
    assert.match(err, text);
    assert.match(`${refusal()?.detail}`, detail);
  }
  await becomes(connections, 0);
});

test('a login node behind a hop is asked about a key, after the hop', async () => {
  const clientKeys = [readFileSync(join(lab.dir, 'client'), 'utf8')];
  const publicKey = readFileSync(join(lab.dir, 'client.pub'), 'utf8');
  const question = { loginNode: node(), username: 'root', publicKey, clientKeys };
  assert.equal(await askKey(question), undefined);
  const other = { ...question, publicKey: generateSshKey().publicKey };
  assert.equal(
    await askKey(other),
    `${net.hop.host}:22, through which it is reached: it does not take the key`,
  );
  await becomes(connections, 0);
});

test('a session ends when its hop does, and nothing is left of it', async () => {
  const { done } = await openSession(lab);
  assert.equal(connections(), 1);
  await net.stopHop();
  const { status, err } = await done;
  assert.equal(status, 255);
  assert.match(err, /The login node closed the connection/);
  await becomes(() => lab.gateway.sessions().length, 0);
  await net.startHop();
  assert.equal((await lab.ssh(['gateway', 'true'])).status, 0);
});

test('a session that ends in the midst of a copy leaves no connection to the hop', async () => {
  const child = lab.start('ssh', [...lab.options, 'gateway', 'exec cat /dev/zero']);
  await new Promise((resolve) => child.stdout?.once('data', resolve));
  child.kill('SIGKILL');
  await finished(child);
  await becomes(() => lab.gateway.sessions().length + connections(), 0);
});
