/**
 * A profile's file, readable by its owner alone: the environment it is bound to, the sessions
 * themselves, and which sessions lie in the operating system's credential store instead.
 */
import { chmod, mkdir, readFile, rename } from 'node:fs/promises';
import { homedir, userInfo } from 'node:os';
import { isAbsolute, posix, win32 } from 'node:path';
import { messageOf } from '../../lib/error-message.ts';
import { writeAtomically } from '../atomic-file.ts';
import { failure } from '../exit.ts';
import { isObject } from '../net/request.ts';
import { parseSession, type Session } from './session.ts';

export interface ProfileFile {
  /** The environment the profile is bound to. */
  platformUrl?: string;
  /** By platform URL. */
  sessions: Record<string, Session>;
  /** The platform URLs of the sessions in the credential store. */
  inKeyring: string[];
}

/**
 * `$XDG_STATE_HOME/andromeda` (XDG Base Directory: a relative path there is to be ignored); on Windows, where access lists
 * keep others out of it, `%LOCALAPPDATA%\\andromeda`.
 */
export function stateDirectory(env = process.env, platform: NodeJS.Platform = process.platform): string {
  const { isAbsolute, join } = platform === 'win32' ? win32 : posix;
  const base = env.XDG_STATE_HOME || (platform === 'win32' ? env.LOCALAPPDATA : undefined);
  if (base && isAbsolute(base)) return join(base, 'andromeda');
  const usual = platform === 'win32' ? ['AppData', 'Local'] : ['.local', 'state'];
  return join(homeDirectory(), ...usual, 'andromeda');
}

/** The person's home. Never a relative path: the session would lie wherever the command was given. */
export function homeDirectory(): string {
  const homes = [homedir, () => userInfo().homedir].map((find) => {
    try {
      return find();
    } catch {
      return ''; // an account that the machine does not know, as in a container
    }
  });
  const home = homes.find((path) => isAbsolute(path));
  if (home === undefined) throw failure('You have no home directory here; set HOME to one.');
  return home;
}

/** Makes the directory where it is missing, for its owner alone. */
export async function prepareDirectory(directory: string): Promise<void> {
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    await chmod(directory, 0o700); // it may have been there before, with wider rights
  } catch (error) {
    throw failure(`The session cannot be kept in ${directory}: ${messageOf(error)}.`, error);
  }
}

/** A profile that was never written is an empty one. Throws a sentence when the file is damaged. */
export async function readProfile(path: string): Promise<ProfileFile> {
  const file = await readAny(path);
  if (file === 'damaged')
    throw failure(
      `${path} is damaged; sign in again with \`andromeda auth login --url <platform_url>\`, which keeps it aside.`,
    );
  return file;
}

/** Renames a damaged file, so that a new one can be written; returns what it is called now, undefined for a sound one. */
export async function setAsideDamaged(path: string): Promise<string | undefined> {
  if ((await readAny(path)) !== 'damaged') return undefined;
  const aside = `${path}.damaged-${new Date().toISOString().replaceAll(':', '-')}`;
  await rename(path, aside).catch((error: unknown) => {
    throw failure(`${path} is damaged and cannot be renamed: ${messageOf(error)}.`, error);
  });
  return aside;
}

async function readAny(path: string): Promise<ProfileFile | 'damaged'> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw failure(`${path} cannot be read: ${messageOf(error)}.`, error);
  });
  if (text === undefined) return { sessions: {}, inKeyring: [] };
  return parse(text) ?? 'damaged';
}

/** Writes the profile, whole or not at all. */
export async function writeProfile(path: string, file: ProfileFile): Promise<void> {
  const { inKeyring, ...rest } = file;
  const content = inKeyring.length === 0 ? rest : file;
  await writeAtomically(path, `${JSON.stringify(content, null, 2)}\n`).catch((error: unknown) => {
    throw failure(`The session could not be written to ${path}: ${messageOf(error)}.`, error);
  });
}

function parse(text: string): ProfileFile | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (!isObject(value) || !isObject(value.sessions)) return undefined;
    const { platformUrl, sessions, inKeyring } = value;
    const file: ProfileFile = { sessions: {}, inKeyring: [] };
    if (typeof platformUrl === 'string') file.platformUrl = platformUrl;
    if (Array.isArray(inKeyring)) file.inKeyring = inKeyring.filter((url) => typeof url === 'string');
    for (const [url, stored] of Object.entries(sessions)) {
      const session = parseSession(stored);
      // Under another environment's key, its token would be sent to the wrong server.
      if (!session || session.platformUrl !== url) return undefined;
      file.sessions[url] = session;
    }
    return file;
  } catch {
    return undefined;
  }
}
