/** HAProxy with docs/scale/haproxy.cfg, its addresses changed to the lab's. */
import type { ChildProcess } from 'node:child_process';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Scratch } from '../../bench/scratch.ts';
import { type Addresses, proxyPorts, readExample } from './addresses.ts';

/** Why there is none here, as a clause; undefined where there is. */
export function whyNoProxy(): string | undefined {
  return spawnSync('haproxy', ['-v'], { env: searchPath }).status === 0
    ? undefined
    : 'HAProxy is not installed';
}

const searchPath = { ...process.env, PATH: `${process.env['PATH']}:/usr/sbin` };

/** Its file for a lab, which has no TLS, and another port for SSH, as 22 is root's. */
export function proxyText({ adapt }: Addresses): string {
  return adapt(readExample('haproxy.cfg'))
    .replaceAll(' ssl crt /etc/haproxy/andromeda.pem', '')
    .replace(/^(frontend ssh from ssh\n\s+bind \S+):22$/m, `$1:${proxyPorts.ssh}`)
    .replace(/^(frontend console from web\n\s+bind \S+):443$/m, `$1:${proxyPorts.console}`);
}

/** Starts it. */
export function startProxy(scratch: Scratch, addresses: Addresses): ChildProcess {
  const file = join(scratch.folder('haproxy'), 'haproxy.cfg');
  writeFileSync(file, proxyText(addresses));
  return scratch.start(['haproxy', '-db', '-f', file], {
    stdio: ['ignore', 'ignore', 'ignore'],
    env: searchPath,
  });
}
