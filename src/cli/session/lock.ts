/**
 * A lock between processes: a file that only one of them can create. It names its holder, so that the lock of a killed
 * process can be broken.
 */

import { randomUUID } from 'node:crypto';
import { open, readFile, rm, stat, utimes } from 'node:fs/promises';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../../lib/error-message.ts';
import { isAlive } from '../../lib/host-ids.ts';
import { failure } from '../exit.ts';
import { isHeldOnWindows } from '../files.ts';
import { isObject, parseJson } from '../net/request.ts';

/** The holder, which may wait for an issuer or a person, touches its lock more often: an older lock is abandoned. */
const staleMs = 30_000;
const retryMs = 50;

export async function exclusively<T>(path: string, work: () => Promise<T>): Promise<T> {
  const holder = JSON.stringify({ pid: process.pid, host: hostname(), nonce: randomUUID() });
  await acquire(path, holder);
  const touching = setInterval(() => void utimes(path, new Date(), new Date()).catch(() => {}), staleMs / 6);
  try {
    return await work();
  } finally {
    clearInterval(touching);
    // Another process may have broken our lock as stale: the present lock is then not ours.
    if ((await contents(path)) === holder) await rm(path, { force: true });
  }
}

async function acquire(path: string, holder: string): Promise<void> {
  const deadline = Date.now() + 2 * staleMs;
  while (!(await create(path, holder))) {
    if (await isAbandoned(path)) await breakLock(path, holder);
    else if (Date.now() > deadline)
      throw failure(`Another andromeda command does not release ${path}; delete it if none is running.`);
    else await sleep(retryMs);
  }
}

async function create(path: string, holder: string): Promise<boolean> {
  try {
    await using file = await open(path, 'wx', 0o600);
    await file.writeFile(holder).catch(async (error: unknown) => {
      await rm(path, { force: true }); // on a full disk: without its holder, it would block every other command
      throw error;
    });
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false;
    if (isHeldOnWindows(error)) return false;
    throw failure(`${path} cannot be written: ${messageOf(error)}.`, error);
  }
}

/** Only one process at a time breaks a lock: two could each remove the other's new lock. */
async function breakLock(path: string, holder: string): Promise<void> {
  const breaker = `${path}.break`;
  if (!(await create(breaker, holder))) {
    if ((await ageOf(breaker)) > staleMs) await rm(breaker, { force: true });
    return;
  }
  try {
    if (await isAbandoned(path)) await rm(path, { force: true });
  } finally {
    await rm(breaker, { force: true });
  }
}

async function isAbandoned(path: string): Promise<boolean> {
  if ((await ageOf(path)) > staleMs) return true;
  const text = await contents(path);
  return text !== undefined && isGone(text);
}

/** Whether the holder was a process of this machine that has ended. Several machines may share a home. */
function isGone(holder: string): boolean {
  const value = parseJson(holder);
  if (!isObject(value) || value.host !== hostname() || typeof value.pid !== 'number') return false;
  return !isAlive(value.pid);
}

async function ageOf(path: string): Promise<number> {
  const found = await stat(path).catch(() => undefined);
  return found ? Date.now() - found.mtimeMs : 0;
}

async function contents(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').catch(() => undefined);
}
