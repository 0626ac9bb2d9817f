/** The service as people run it: `scripts/andromeda serve` in a process of its own, on free ports. */
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePorts } from '../../test/support/ports.ts';

export const root = join(import.meta.dirname, '..', '..');

export interface Service {
  command: string[];
  ports: { platform: number; business: number; gateway: number };
}

/** Writes a configuration into `dir` and says how to run it. `issuer` left out: the embedded one. */
export async function configureService(
  dir: string,
  { lab, issuer }: { lab: object; issuer?: string },
): Promise<Service> {
  const [platform = 0, business = 0, gateway = 0, embedded = 0] = await freePorts(4);
  const at = (port: number) => ({ listen: `127.0.0.1:${port}` });
  const config = {
    dataDir: './data',
    platform: at(platform),
    business: at(business),
    gateway: at(gateway),
    identity: issuer === undefined ? { embedded: at(embedded) } : { issuer },
    log: { level: 'warn' },
    seed: './lab.yaml',
  };
  // JSON is YAML.
  writeFileSync(join(dir, 'andromeda.yaml'), JSON.stringify(config));
  writeFileSync(join(dir, 'lab.yaml'), JSON.stringify(lab));
  return {
    command: [join(root, 'scripts/andromeda'), 'serve', '--config', join(dir, 'andromeda.yaml')],
    ports: { platform, business, gateway },
  };
}

/** Resolves when both APIs say they are ready and the gateway greets. */
export async function serving({ ports }: Service): Promise<void> {
  const ready = 'GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';
  await Promise.all([
    answers(ports.platform, /^HTTP\/1\.1 200 /, ready),
    answers(ports.business, /^HTTP\/1\.1 200 /, ready),
    answers(ports.gateway, /^SSH-2\.0-/),
  ]);
}

/** Resolves once a port answers as wanted; rejects when it does not for half a minute. */
export async function answers(port: number, wanted: RegExp, request = ''): Promise<void> {
  const deadline = performance.now() + 30_000;
  while (!wanted.test(await firstAnswer(port, request))) {
    if (performance.now() > deadline) throw new Error(`nothing answers on port ${port}`);
    await sleep(5);
  }
}

function firstAnswer(port: number, request: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(request));
    const finish = (text: string) => {
      socket.destroy();
      resolve(text);
    };
    socket.once('data', (data) => finish(data.toString('latin1')));
    socket.once('error', () => finish(''));
    socket.once('close', () => finish(''));
    socket.setTimeout(5_000, () => finish(''));
  });
}
