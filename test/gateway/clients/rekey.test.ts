/** New keys in the midst of a session (RFC 4253, section 9; RFC 4344, section 3), asked for by the gateway itself. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { LOGIN } from '../lab.ts';
import { pythonWith, startMaster, withEachNode } from './nodes.ts';

const CIPHERS = ['aes128-gcm@openssh.com', 'chacha20-poly1305@openssh.com', 'aes256-ctr'];
const MEGABYTES = 7;

withEachNode(
  'new keys by volume',
  (at) => {
    for (const cipher of CIPHERS)
      test(`${cipher}: both ways at once, every byte in its place`, async () => {
        const args = `${at.lab.options.join(' ')} -v -c ${cipher} gateway`;
        const ran = await at.lab.run('bash', [
          '-o',
          'pipefail',
          '-c',
          `head -c ${MEGABYTES}M /dev/urandom | tee a | ssh ${args} cat > b && cmp a b`,
        ]);
        assert.equal(ran.status, 0, ran.err);
        // The gateway counts both directions; the first is that of the login.
        const exchanges = ran.err.match(/SSH2_MSG_NEWKEYS received/g)?.length ?? 0;
        assert.ok(exchanges > MEGABYTES / 4, `${exchanges} key exchanges`);
      });

    test('a session whose channels are many takes it too', async () => {
      const script = 'for i in $(seq 40); do seq 1 20000 | md5sum & done; wait';
      const jobs = Array.from({ length: 6 }, () =>
        at.lab.ssh(['gateway', `${script}; seq 1 200000 | md5sum`]),
      );
      for (const { status, out } of await Promise.all(jobs)) {
        assert.equal(status, 0);
        assert.equal(new Set(out.trim().split('\n')).size, 2);
      }
    });

    for (const module of ['paramiko', 'asyncssh']) {
      const python = pythonWith(module);
      test(`${module} takes it`, { skip: !python && `${module} is not installed here` }, async () => {
        const { lab } = at;
        const ran = await lab.run(python ?? '', [
          '-W',
          'ignore',
          '-c',
          scripts[module] ?? '',
          lab.dir,
          `${lab.gateway.port}`,
          LOGIN,
        ]);
        assert.deepEqual([ran.status, ran.out], [0, 'True\n'], ran.err);
      });
    }
  },
  { rekeyBytes: 1_000_000 },
);

withEachNode(
  'new keys by time',
  (at) => {
    test('in an otherwise quiet session, which goes on', async () => {
      const ran = await at.lab.ssh(['-v', 'gateway', 'sleep 2; cat'], 'still here');
      assert.deepEqual([ran.status, ran.out], [0, 'still here'], ran.err);
      const exchanges = ran.err.match(/SSH2_MSG_NEWKEYS received/g)?.length ?? 0;
      assert.ok(exchanges > 2, `${exchanges} key exchanges`);
    });

    if (at.kind === 'sshd')
      test('while a login node stands still, what its channels may be sent does not pile up', async (t) => {
        const way = [...(await startMaster(t, at.lab)), 'gateway'];
        const size = 4_000_000;
        const copy = `(sleep 1.5; head -c ${size} /dev/zero) | ssh ${[...at.lab.options, ...way].join(' ')} wc -c`;
        const channels = Array.from({ length: 8 }, () => at.lab.run('bash', ['-c', copy]));
        await sleep(1000);
        // All channels are one process of the node's; it is stopped from within, for several times the age of keys.
        const stop = await at.lab.ssh([...way, 'node=$PPID; (sleep 3; kill -CONT $node) & kill -STOP $node']);
        assert.equal(stop.status, 0, stop.err);
        for (const { status, out, err } of await Promise.all(channels))
          assert.deepEqual([status, out.trim()], [0, `${size}`], err);
      });
  },
  { rekeyMs: 400, recheckMs: 200, backlogHardBytes: 3_000_000 },
);

const scripts: Record<string, string> = {
  paramiko: `
import os, sys, threading, paramiko
dir, port, user = sys.argv[1:]
client = paramiko.SSHClient()
client.load_host_keys(dir + "/known_hosts")
client.connect("127.0.0.1", int(port), user, key_filename=dir + "/user", allow_agent=False, look_for_keys=False)
data = os.urandom(3_500_000)
stdin, stdout, _ = client.exec_command("cat")
def feed():
    stdin.write(data)
    stdin.channel.shutdown_write()
threading.Thread(target=feed).start()
print(stdout.read() == data)
client.close()
`,
  asyncssh: `
import asyncio, asyncssh, os, sys
dir, port, user = sys.argv[1:]
async def main():
    options = dict(client_keys=[dir + "/user"], known_hosts=dir + "/known_hosts", agent_path=None, config=None)
    async with asyncssh.connect("127.0.0.1", port=int(port), username=user, **options) as connection:
        data = os.urandom(3_500_000)
        print((await connection.run("cat", input=data, encoding=None)).stdout == data)
asyncio.run(main())
`,
};
