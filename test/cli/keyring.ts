/** A session bus of its own with a real gnome-keyring, unlocked, as on somebody's desktop. */
import { execFileSync, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { limit } from '../support/limit.ts';

const programs = ['/usr/bin/dbus-run-session', '/usr/bin/gnome-keyring-daemon'];
const missing = programs.filter((path) => !existsSync(path));

/** Why a test that needs it is skipped; false where it is there. */
export const noKeyring = missing.length > 0 ? `not installed: ${missing.join(', ')}` : false;

export interface Keyring {
  /** What a process needs to find it. */
  env: Record<string, string>;
  /** The secrets in it that are ours, by account. */
  secrets(): Record<string, string>;
}

/** `locked`: its password is set, and nobody has typed it since the bus was started. */
export async function startKeyring(t: TestContext, { locked = false } = {}): Promise<Keyring> {
  const home = await mkdtemp(join(tmpdir(), 'andromeda-keyring-'));
  const unlock = 'printf password | gnome-keyring-daemon --unlock --components=secrets >/dev/null 2>&1';
  const own = { HOME: home, XDG_RUNTIME_DIR: home, PATH: process.env.PATH ?? '' };
  const bus = async (script: string) => {
    // It ends with its standard input.
    const line = `${script}; echo "$DBUS_SESSION_BUS_ADDRESS"; exec cat`;
    const child = spawn('dbus-run-session', ['--', 'sh', '-c', line], {
      env: own,
      stdio: ['pipe', 'pipe', 'ignore'],
      timeout: limit(120_000),
    });
    const ended = new Promise((resolve) => child.on('close', resolve));
    const address = await new Promise<string>((resolve) => {
      child.stdout.once('data', (text) => resolve(String(text).trim()));
      child.once('close', () => resolve(''));
    });
    const end = () => {
      child.stdin.end();
      return ended;
    };
    return { env: { ...own, DBUS_SESSION_BUS_ADDRESS: address }, end };
  };
  let session = await bus(unlock);
  if (locked) {
    inNode(session.env, `new Entry('andromeda', 'x').setPassword('x')`);
    await session.end();
    session = await bus('true');
  }
  t.after(async () => {
    await session.end();
    await rm(home, { recursive: true, force: true, maxRetries: 5 });
  });
  const { env } = session;
  return {
    env: { DBUS_SESSION_BUS_ADDRESS: env.DBUS_SESSION_BUS_ADDRESS, ANDROMEDA_CREDENTIAL_STORE: '' },
    secrets: () => {
      const found = inNode(env, `console.log(JSON.stringify(findCredentials('andromeda')))`);
      const all = JSON.parse(found) as { account: string; password: string }[];
      return Object.fromEntries(all.map(({ account, password }) => [account, password]));
    },
  };
}

function inNode(env: Record<string, string>, code: string): string {
  const script = `const { Entry, findCredentials } = require('@napi-rs/keyring'); ${code}`;
  return execFileSync(process.execPath, ['-e', script], {
    env,
    encoding: 'utf8',
    cwd: import.meta.dirname,
    timeout: limit(20_000),
  });
}
