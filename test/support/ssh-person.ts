/** A person with a registered key and OpenSSH's own client, at the gateway of a service in this process. */
import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { alpha, eventually, type TestApp } from './app.ts';
import { type Ended, finished, heard } from './heard.ts';
import { limit } from './limit.ts';
import { keygen } from './ssh-keys.ts';

export interface SshPerson extends Disposable {
  userId: string;
  keyId: string;
  orgId: string;
  /** Options for ssh and its kin, and the name to log in with. */
  options: string[];
  target: string;
  ssh(args: string[], input?: string): Promise<Ended>;
  /** A session that is open until it is ended; `said` resolves with its first output. */
  start(args: string[]): {
    child: ChildProcess;
    said: Promise<string>;
    /** What is on its standard error so far. */
    err(): string;
    ended: Promise<Ended>;
  };
  access(): Promise<Record<string, unknown>>;
}

/** Registers a key for `name`, unless a lab file has, and waits until the cluster `alpha` lets it in. */
export async function sshPerson(
  service: TestApp,
  name: string,
  key = keygen('-t', 'ed25519'),
): Promise<SshPerson> {
  const directory = mkdtempSync(join(tmpdir(), 'andromeda-person-'));
  const file = join(directory, 'key');
  writeFileSync(file, key.privateKey);
  chmodSync(file, 0o600);
  const { body: me } = await service.business('/me', { as: name });
  const orgId = me.memberships[0].org_id;
  const added = await service.write('/me/ssh-keys', { as: name, body: { public_key: key.publicKey } });
  const path = `/clusters/${alpha}/ssh-access?organizationId=${orgId}`;
  const access = async () => (await service.platform(path, { as: name })).body;
  const { host_key } = await eventually(access, (body) => body.ready === true).catch((error) => {
    rmSync(directory, { recursive: true });
    throw error;
  });
  writeFileSync(join(directory, 'known_hosts'), `[127.0.0.1]:${service.gatewayPort} ${host_key}\n`);
  const options = [
    ...['-F', 'none', '-i', file, '-p', `${service.gatewayPort}`, '-l', `${alpha}.${name}`],
    ...['IdentitiesOnly=yes', 'IdentityAgent=none', 'BatchMode=yes', 'StrictHostKeyChecking=yes'].flatMap(
      (option) => ['-o', option],
    ),
    ...['-o', `UserKnownHostsFile=${directory}/known_hosts`],
  ];
  const target = '127.0.0.1';
  const children = new Set<ChildProcess>();

  function start(args: string[]) {
    const child = spawn('ssh', [...options, ...args], { stdio: ['pipe', 'pipe', 'pipe'] });
    children.add(child);
    child.stdin.on('error', () => {});
    const err = heard(child.stderr);
    const timer = setTimeout(() => child.kill('SIGKILL'), limit(120_000));
    const ended = finished(child).finally(() => {
      clearTimeout(timer);
      children.delete(child);
    });
    const said = new Promise<string>((resolve) => {
      child.stdout.once('data', resolve);
      child.on('close', () => resolve(''));
    });
    return { child, said, err, ended };
  }

  return {
    userId: me.user.id,
    keyId: added.body.ssh_key?.id ?? '',
    orgId,
    options,
    target,
    access,
    start,
    ssh(args, input = '') {
      const { child, ended } = start(args);
      child.stdin?.end(input);
      return ended;
    },
    [Symbol.dispose]() {
      for (const child of children) child.kill('SIGKILL');
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
