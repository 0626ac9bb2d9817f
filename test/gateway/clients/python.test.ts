/** paramiko and asyncssh, the SSH libraries of Python, through the gateway; what they do is in the scripts beside this. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { keygen } from '../../support/ssh-keys.ts';
import { LOGIN } from '../lab.ts';
import { echoPort, pythonWith, withEachNode } from './nodes.ts';

// New keys are asked for by the gateway too.
const limits = { rekeyBytes: 1_000_000 };

withEachNode('Python', limits, (at) => {
  /** Runs a script to its end; what it says it has seen. */
  async function seenBy(
    python: string | undefined,
    script: string,
    ...more: string[]
  ): Promise<Record<string, unknown>> {
    const port = await echoPort(at);
    const { lab } = at;
    const where = ['127.0.0.1', `${lab.gateway.port}`, LOGIN, join(lab.dir, 'user')];
    const args = [...where, join(lab.dir, 'known_hosts'), at.folder, `${port}`, ...more];
    const ran = await lab.run(python ?? '', ['-W', 'ignore', join(import.meta.dirname, script), ...args]);
    assert.equal(ran.status, 0, ran.err);
    return JSON.parse(ran.out);
  }

  const common = {
    exec: ['12\n', 'late\n', 3],
    'at once': Array.from({ length: 20 }, (_, i) => [`${i}`, '', i]),
    piped: true,
    sftp: true,
    forwarded: 'through',
    refused: 1,
    shell: [true, 5],
    'alive after keepalives': 'yes\n',
  };

  const paramiko = pythonWith('paramiko');
  test('paramiko: commands, many at once, new keys, sftp, forwarding, a shell', {
    skip: !paramiko && 'paramiko is not installed here',
  }, async () => {
    // Of OpenSSH's own format it would take the file for a DSA key as well.
    const rsa = join(at.lab.dir, 'rsa');
    writeFileSync(rsa, keygen('-t', 'rsa', '-m', 'PEM').privateKey, { mode: 0o600 });
    const { ciphers, ...seen } = await seenBy(paramiko, 'with_paramiko.py', rsa);
    assert.match(`${ciphers}`, /^aes\d+-(ctr|gcm@openssh\.com)$/);
    assert.deepEqual(seen, common);
  });

  const asyncssh = pythonWith('asyncssh');
  test('asyncssh: commands, many at once, new keys, sftp, forwarding, a shell, signals', {
    skip: !asyncssh && 'asyncssh is not installed here',
  }, async () => {
    // OpenSSH's server delivers no signals to sessions of root, which the lab's are.
    const signals = at.kind !== 'sshd';
    assert.deepEqual(await seenBy(asyncssh, 'with_asyncssh.py', signals ? 'signals' : 'none'), {
      ...common,
      'exit signal': 'TERM',
      'local port': 'and a port',
      ...(signals && { signalled: 'TERM' }),
    });
  });
});
