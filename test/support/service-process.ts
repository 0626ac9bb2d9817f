/** The service as a process of its own, from a directory with a configuration on free ports. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { eventually } from './app.ts';
import { heard } from './heard.ts';
import { freePorts } from './ports.ts';
import { program } from './program.ts';

/** An installation's configuration, in which nothing is wrong. */
export interface Settings {
  file: string;
  platform: number;
  business: number;
  gateway: number;
  issuer: number;
  settings: Record<'platform' | 'business' | 'gateway' | 'identity', object>;
  /** Writes it again, with others in their place. */
  write(others?: object): void;
}

export async function writeSettings(directory: string, others: object = {}): Promise<Settings> {
  const [platform = 0, business = 0, gateway = 0, issuer = 0] = await freePorts(4);
  const at = (port: number) => ({ listen: `127.0.0.1:${port}` });
  const settings = {
    platform: at(platform),
    business: at(business),
    gateway: { ...at(gateway), port: gateway },
    identity: { embedded: at(issuer) },
  };
  const file = join(directory, 'andromeda.yaml');
  const write = (changed = {}) =>
    writeFileSync(file, stringify({ ...settings, ...changed }), { mode: 0o600 });
  write(others);
  return { file, platform, business, gateway, issuer, settings, write };
}

export interface ServiceProcess extends AsyncDisposable {
  child: ChildProcess;
  /** All that it wrote. */
  log(): string;
  /** What it logged of one kind. */
  events(name: string): Record<string, unknown>[];
  /** Waits until it logged an event so many times; fails where it ends before that. */
  until(event: string, times?: number): Promise<void>;
  /** Sends a signal; resolves to its exit status. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
  ended: Promise<number | null>;
}

/** Starts it; `await using` stops it, and with it its gateway. */
export function serve(file: string, env: NodeJS.ProcessEnv = process.env): ServiceProcess {
  const child = spawn(program, ['serve', '--config', file], { stdio: ['ignore', 'ignore', 'pipe'], env });
  const log = heard(child.stderr);
  const ended = once(child, 'close').then(([status]): number | null => status);
  const isOf = (event: string) => (line: string) => line.includes(`"event":"${event}"`);
  const events = (name: string) =>
    log()
      .split('\n')
      .slice(0, -1)
      .filter(isOf(name))
      .map((line) => JSON.parse(line));
  return {
    child,
    log,
    events,
    async until(event, times = 1) {
      const isThere = () => events(event).length >= times;
      await eventually(async () => isThere() || child.exitCode !== null, Boolean);
      if (!isThere()) throw new Error(`The service ended without ${times} of ${event}: ${log()}`);
    },
    stop(signal = 'SIGTERM') {
      child.kill(signal);
      return ended;
    },
    ended,
    async [Symbol.asyncDispose]() {
      child.kill('SIGCONT');
      child.kill('SIGTERM');
      await ended;
    },
  };
}
