/** A person with a key that is let in, and OpenSSH's own client. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Scratch } from '../../bench/scratch.ts';
import { type Addresses, ports, proxyPorts } from './addresses.ts';
import type { Api } from './api.ts';

export const clusterId = '7b6f1f0e-3c39-4a8e-9a55-0d1c2b3a4f50';

export interface Person {
  name: string;
  token: string;
  keyId: string;
  /** Arguments of ssh to the cluster: by way of HAProxy, or of one server's gateway. */
  to(host?: string): string[];
}

interface World {
  scratch: Scratch;
  addresses: Addresses;
  business: Api;
  platform: Api;
}

const knownHosts = (hosts: readonly string[], hostKey: string) =>
  hosts.map((host) => `${host} ${hostKey}\n`).join('');

/** Registers a new key and resolves when it is let in. */
export async function registerPerson(
  { scratch, addresses, business, platform }: World,
  { name, token, orgId }: { name: string; token: string; orgId: string },
): Promise<Person> {
  const folder = scratch.folder('person');
  const keyFile = join(folder, 'key');
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', '', '-f', keyFile]);
  const public_key = readFileSync(`${keyFile}.pub`, 'utf8').trim();
  const added = await business.ask<{ ssh_key: { id: string; fingerprint: string } }>('/me/ssh-keys', {
    token,
    body: { public_key },
  });
  const { id = '', fingerprint = '' } = added?.ssh_key ?? {};
  const query = new URLSearchParams({ organizationId: orgId, keyFingerprint: fingerprint });
  const path = `/clusters/${clusterId}/ssh-access?${query}`;
  const hostKey = await waitForAccess(platform, path, token);
  const gateways = addresses.servers.map((host) => `[${host}]:${ports.gateway}`);
  const proxy = `[${addresses.proxy}]:${proxyPorts.ssh}`;
  writeFileSync(join(folder, 'known_hosts'), knownHosts([...gateways, proxy], hostKey));
  const options = {
    UserKnownHostsFile: join(folder, 'known_hosts'),
    StrictHostKeyChecking: 'yes',
    IdentitiesOnly: 'yes',
    IdentityAgent: 'none',
    BatchMode: 'yes',
    ConnectTimeout: '10',
    // What is measured is not the key exchange, which costs three times the rest.
    KexAlgorithms: 'curve25519-sha256',
  };
  const common = Object.entries(options).flatMap(([key, value]) => ['-o', `${key}=${value}`]);
  return {
    name,
    token,
    keyId: id,
    to: (host) => [
      ...['-F', 'none', '-i', keyFile, '-l', `${clusterId}.${name}`, ...common],
      ...['-p', `${host === undefined ? proxyPorts.ssh : ports.gateway}`, host ?? addresses.proxy],
    ],
  };
}

async function waitForAccess(platform: Api, path: string, token: string): Promise<string> {
  const until = performance.now() + 120_000;
  for (;;) {
    const access = await platform.ask<{ ready: boolean; reason?: string; host_key?: string }>(path, {
      token,
    });
    if (access?.ready && access.host_key) return access.host_key;
    if (performance.now() > until) throw new Error(`a key is not let in: ${access?.reason}`);
    await sleep(250);
  }
}

export interface Ended {
  status: number | null;
  out: string;
  err: string;
}

/** Runs ssh to its end, or for so long. */
export function ssh(args: string[], limitMs: number): Promise<Ended> {
  const child = spawn('ssh', args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const limit = setTimeout(() => child.kill('SIGKILL'), limitMs);
  return gather(child).finally(() => clearTimeout(limit));
}

function gather(child: ChildProcess): Promise<Ended> {
  const parts = { out: '', err: '' };
  child.stdout?.setEncoding('utf8').on('data', (part) => {
    parts.out += part;
  });
  child.stderr?.setEncoding('utf8').on('data', (part) => {
    parts.err = `${parts.err}${part}`.slice(-500);
  });
  return new Promise((resolve) => child.once('close', (status) => resolve({ status, ...parts })));
}
