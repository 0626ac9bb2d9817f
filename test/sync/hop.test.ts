/** Hosts that only a hop can reach, as the Slurm driver's shell goes to them: real sshds in a network of their own. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before } from 'node:test';
import type { Hop } from '../../src/domain/slurm/hop.ts';
import { createShell, HostError, type Shell } from '../../src/sync/slurm/shell.ts';
import { becomes } from '../support/app.ts';
import { type HopNetwork, noHopNetwork, openHopNetwork } from '../support/hop-network.ts';
import { unless } from '../support/unless.ts';

const test = unless(noHopNetwork);
const limits = { connectSeconds: 20, ms: 60_000 };

let net: HopNetwork;
let shell: Shell;
before(async () => {
  if (noHopNetwork) return;
  net = await openHopNetwork();
  shell = createShell(options());
});
after(async () => {
  await shell?.close();
  await net?.[Symbol.asyncDispose]();
});

/** A directory whose path is too long for a socket. */
const options = () => ({
  user: 'root',
  identityFile: net.identityFile,
  directory: join(net.dir, 'hosts', 'x'.repeat(100)),
});

function run(
  by: Shell,
  script: string,
  { number = 1, via = net.hop as Hop, hostKey = net.nodeKey, port = net.nodePort } = {},
  within = limits,
) {
  const host = `127.0.0.${number}`;
  const reach = { host, port, hostKey, via };
  const one = { address: `${host}:${port}`, roles: new Set<never>(), nodes: [], reach };
  return by.run(one, script, AbortSignal.timeout(within.ms), within);
}

const begun = () => join(net.dir, 'begun');
/** A script that goes on until the test is over; sshd does not end what it started. */
const long = () => `touch ${begun()}; while [ -e ${begun()} ]; do sleep 0.2; done`;
const logins = (log: string) => log.match(/Accepted publickey/g)?.length ?? 0;
const forty = Array.from({ length: 40 }, (_, index) => index + 1);
const at = () => `${net.hop.host}:22`;

test('forty hosts behind a hop share one connection to it, whose sshd limits what begins at once as usual', async () => {
  const names = await Promise.all(forty.map((number) => run(shell, 'echo "$SSH_CONNECTION"', { number })));
  assert.deepEqual(
    names.map((text) => text.trim().split(' ')[2]),
    forty.map((number) => `127.0.0.${number}`),
  );
  assert.deepEqual([logins(net.logs.hop ?? ''), logins(net.logs.node ?? '')], [1, 40]);
  // Through a host behind it, too, as through two hops.
  const inner = { host: '127.0.0.9', port: net.nodePort, hostKey: net.nodeKey, via: net.hop };
  assert.match(await run(shell, 'echo "$SSH_CONNECTION"', { number: 3, via: inner }), / 127\.0\.0\.3 2222$/m);
  assert.equal(logins(net.logs.hop ?? ''), 1);
});

test('each host is pinned by itself, and the fault names the one that shows another key', async () => {
  const wrong = 'shows a host key that is not the expected one; compare it, and correct hostKey.';
  await assert.rejects(
    run(shell, 'true', { hostKey: net.hop.hostKey }),
    fault(`127.0.0.1:2222 ${wrong}`, false),
  );
  const via = { ...net.hop, hostKey: net.nodeKey };
  const reached = `127.0.0.1:2222 cannot be asked: ${at()}, through which it is reached,`;
  await assert.rejects(run(shell, 'true', { via }), fault(`${reached} ${wrong}`, false));
  await assert.rejects(
    run(shell, 'true', { port: 2 }),
    fault(`127.0.0.1:2 cannot be reached: ${at()} gets no connection to it.`, true),
  );
});

test('a hop that goes away is the fault of every host behind it, and all come back with it', async () => {
  const under = run(shell, long());
  under.catch(() => {});
  await becomes(() => existsSync(begun()), true);
  await net.stopHop();
  const gone = new RegExp(
    `127\\.0\\.0\\.\\d+:2222 cannot be asked: ${at()}, through which it is reached, cannot be reached: `,
  );
  await assert.rejects(under, gone);
  const results = await Promise.allSettled(forty.map((number) => run(shell, 'true', { number })));
  for (const one of results) assert.match(one.status === 'rejected' ? one.reason.message : 'it ran', gone);
  await net.startHop();
  await becomes(() => run(shell, 'echo back').catch(() => ''), 'back\n');
});

test('a hop that hangs is the one fault of every host behind it, and holds no other host up', async () => {
  await run(shell, 'true');
  net.hangHop();
  const address = `${net.hop.host}:${net.nodePort}`;
  const reach = { host: net.hop.host, port: net.nodePort, hostKey: net.nodeKey };
  const other = { address, roles: new Set<never>(), nodes: [], reach };
  const usual = { connectSeconds: 8, ms: 60_000 };
  const messages = async () => {
    let over = 0;
    const errors = forty.map((number) =>
      run(shell, 'true', { number }, usual).then(
        () => assert.fail('it ran'),
        (error) => {
          over += 1;
          return error;
        },
      ),
    );
    await shell.run(other, 'true', AbortSignal.timeout(60_000), usual);
    assert.ok(over < errors.length, 'the other host was asked meanwhile');
    const faults = await Promise.all(errors);
    assert.ok(faults.every((error) => error instanceof HostError && error.isUnreachable));
    return [...new Set(faults.map(({ hop }) => hop?.message))].join();
  };
  assert.equal(
    await messages(),
    `${at()} cannot be reached: Timeout, server ${net.hop.host} not responding.`,
  );
  // From now on its sshd takes a connection and says nothing.
  assert.match(await messages(), new RegExp(`^${at()} cannot be reached: Connection [^,]*timed out[^,]*$`));
  await net.stopHop();
  await net.startHop();
  await becomes(() => run(shell, 'echo back').catch(() => ''), 'back\n');
});

test('a hop that forbids forwarding says what to change', async () => {
  await net.stopHop();
  await net.startHop('AllowTcpForwarding no');
  const by = createShell(options());
  const error = await run(by, 'true').catch((reason) => reason);
  assert.match(
    error.message,
    new RegExp(`^127.0.0.1:2222 cannot be asked: ${at()}, through .*forbids forwarding: see AllowTcp`),
  );
  assert.equal(error.isUnreachable, false);
  await by.close();
  await net.stopHop();
  await net.startHop();
});

test('nothing is left of the connection to a hop after the end, also where the service is killed', async () => {
  const by = createShell(options());
  const under = run(by, long());
  under.catch(() => {});
  await becomes(() => net.clients().length >= 3, true);
  await by.close();
  await assert.rejects(under);
  await shell.close();
  await becomes(() => net.clients().length, 0);
  const sockets = () => readdirSync(options().directory).filter((name) => /^hop-/.test(name));
  assert.deepEqual(sockets(), []);

  const module = join(import.meta.dirname, '../../src/sync/slurm/shell.ts');
  const host = {
    address: 'a',
    nodes: [],
    reach: { host: '127.0.0.1', port: net.nodePort, hostKey: net.nodeKey, via: net.hop },
  };
  const code = `import { createShell } from ${JSON.stringify(module)};
    const shell = createShell(${JSON.stringify(options())});
    console.log(await shell.run({ ...${JSON.stringify(host)}, roles: new Set() }, 'echo up', AbortSignal.timeout(60_000), ${JSON.stringify(limits)}));
    setInterval(() => {}, 1_000);`;
  const service = spawn(process.execPath, ['--input-type=module', '-e', code], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(service.stdout, 'data');
  assert.equal(sockets().length, 1);
  service.kill('SIGKILL');
  await becomes(() => net.clients().length + sockets().length, 0);
});

function fault(message: string, isUnreachable: boolean) {
  return (error: unknown) => {
    assert.ok(error instanceof HostError);
    assert.deepEqual([error.message, error.isUnreachable], [message, isUnreachable]);
    return true;
  };
}
