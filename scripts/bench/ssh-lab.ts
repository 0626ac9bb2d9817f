/** An sshd as login node, a second one as jump host, and the gateway in a process of its own, all on loopback. */
import type { ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { gatewayArguments } from '../../src/lib/packaging.ts';
import { freePorts } from '../../test/support/ports.ts';
import type { GatewayOrder } from './gateway.ts';
import { program } from './program.ts';
import type { Scratch } from './scratch.ts';
import { answers } from './service.ts';

export interface SshLab {
  /** The process of the gateway, and the sshd that is the jump host. */
  gateway: ChildProcess;
  jump: ChildProcess;
  ports: { node: number; jump: number; gateway: number };
  /** The person's private key, and the names to log in with. */
  userKeyFile: string;
  names: { node: string; gateway: string };
  /** Arguments of `ssh` that lead to the same sshd three ways, with further lines of ssh_config. */
  ways(...options: string[]): Record<'direct' | 'jump' | 'ours', readonly string[]>;
}

const sshd = ['/usr/sbin/sshd', '/usr/bin/sshd', '/usr/local/sbin/sshd'].find((path) => existsSync(path));
const loginName = '7b6f1f0e-3c39-4a8e-9a55-0d1c2b3a4f50.bench';

/** Why there can be no such lab here, in a sentence; undefined when there can. */
export async function whyNoSsh(scratch: Scratch): Promise<string | undefined> {
  if (sshd === undefined) return 'sshd is not installed here';
  const client = await scratch.run(['ssh', '-V']).catch(() => undefined);
  return client === undefined ? 'ssh is not installed here' : undefined;
}

export async function openSshLab(scratch: Scratch): Promise<SshLab> {
  const dir = scratch.folder('ssh');
  const keys = Object.fromEntries(
    await Promise.all(
      ['user', 'node', 'jump', 'host', 'client'].map(async (name) => {
        const file = join(dir, name);
        await scratch.run(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-C', '', '-f', file]);
        return [name, readFileSync(`${file}.pub`, 'utf8').trim()];
      }),
    ),
  );
  const [nodePort = 0, jumpPort = 0, gatewayPort = 0] = await freePorts(3);
  writeFileSync(join(dir, 'authorized'), `${keys.user}\n${keys.client}\n`);
  startSshd(scratch, dir, 'node', nodePort);
  const jump = startSshd(scratch, dir, 'jump', jumpPort);

  const username = userInfo().username;
  const order: GatewayOrder = {
    port: gatewayPort,
    hostKeyFile: join(dir, 'host'),
    clientKeyFile: join(dir, 'client'),
    userKey: keys.user ?? '',
    loginName,
    username,
    loginNode: { host: '127.0.0.1', port: nodePort, hostKey: keys.node ?? '' },
  };
  // With the flags that it has as a process of the service.
  const flags = gatewayArguments().filter((argument) => argument.startsWith('--'));
  const [node = '', ...rest] = program('gateway.ts', order);
  const gateway = scratch.start([node, ...flags, ...rest], { stdio: ['ignore', 'ignore', 'inherit'] });
  await Promise.all([nodePort, jumpPort, gatewayPort].map((port) => answers(port, /^SSH-2\.0-/)));

  const host = (name: string, port: number, user: string) =>
    `Host ${name}\n  HostName 127.0.0.1\n  Port ${port}\n  User ${user}\n`;
  const known = { node: nodePort, jump: jumpPort, host: gatewayPort };
  writeFileSync(
    join(dir, 'known_hosts'),
    Object.entries(known)
      .map(([name, port]) => `[127.0.0.1]:${port} ${keys[name]}\n`)
      .join(''),
  );
  const lines = [
    `UserKnownHostsFile ${join(dir, 'known_hosts')}`,
    `IdentityFile ${join(dir, 'user')}`,
    'IdentitiesOnly yes',
    'IdentityAgent none',
    'BatchMode yes',
    'StrictHostKeyChecking yes',
    host('node', nodePort, username),
    host('jump', jumpPort, username),
    host('gateway', gatewayPort, loginName),
  ];
  return {
    gateway,
    jump,
    ports: { node: nodePort, jump: jumpPort, gateway: gatewayPort },
    userKeyFile: join(dir, 'user'),
    names: { node: username, gateway: loginName },
    ways(...options) {
      // In the file, for `ssh -J` hands hardly a flag but this one on to the ssh that it starts for the jump.
      const file = join(scratch.folder('ssh-config'), 'config');
      writeFileSync(file, [...options, ...lines].join('\n'));
      const config = ['-F', file];
      return {
        direct: [...config, 'node'],
        jump: [...config, '-J', 'jump', 'node'],
        ours: [...config, 'gateway'],
      };
    },
  };
}

function startSshd(scratch: Scratch, dir: string, name: string, port: number): ChildProcess {
  // Debian's sshd refuses to start as root without it; systemd makes it with the service.
  if (process.getuid?.() === 0) mkdirSync('/run/sshd', { recursive: true, mode: 0o755 });
  const file = join(dir, `${name}.config`);
  const lines = [
    `Port ${port}`,
    'ListenAddress 127.0.0.1',
    `HostKey ${join(dir, name)}`,
    `AuthorizedKeysFile ${join(dir, 'authorized')}`,
    'PidFile none',
    'UsePAM no',
    // What a person's shell runs at its start is not what is measured.
    'SetEnv HOME=/nonexistent',
    'StrictModes no',
    'PermitRootLogin yes',
    'MaxStartups 200',
  ];
  writeFileSync(file, `${lines.join('\n')}\n`);
  return scratch.start([sshd ?? 'sshd', '-D', '-e', '-f', file], { stdio: 'ignore' });
}
