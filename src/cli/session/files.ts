/**
 * Sessions in files: one per profile, readable by its owner alone. It names the environment the profile is
 * bound to and holds a session for each environment signed in to.
 */
import { chmod, mkdir, readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { failure } from '../exit.ts';
import { isObject } from '../net/request.ts';
import { writeWhole } from '../whole-file.ts';
import { exclusively } from './lock.ts';
import { type Bindings, parseSession, type Session, type SessionStore } from './session.ts';

interface ProfileFile {
  /** The environment the profile is bound to. */
  platformUrl?: string;
  /** By platform URL. */
  sessions: Record<string, Session>;
}

export interface LocalState {
  sessions: SessionStore;
  bindings: Bindings;
  /** Runs `work` while no other process of this user changes the profile. */
  exclusively<T>(profile: string, work: () => Promise<T>): Promise<T>;
}

/** `$XDG_STATE_HOME/andromeda` (XDG Base Directory: a relative path there is to be ignored). */
export function stateDirectory(env = process.env): string {
  const base = env.XDG_STATE_HOME;
  return join(base && isAbsolute(base) ? base : join(homedir(), '.local', 'state'), 'andromeda');
}

export function openLocalState(env = process.env): LocalState {
  const directory = stateDirectory(env);
  const fileOf = (profile: string) => join(directory, `${profile}.json`);

  const change = async (profile: string, edit: (file: ProfileFile) => void) => {
    const file = await read(fileOf(profile));
    edit(file);
    await prepare(directory);
    await write(fileOf(profile), file);
  };

  return {
    sessions: {
      get: async ({ profile, platformUrl }) => (await read(fileOf(profile))).sessions[platformUrl],
      put: (profile, session) =>
        change(profile, (file) => {
          file.sessions[session.platformUrl] = session;
        }),
      delete: ({ profile, platformUrl }) =>
        change(profile, (file) => {
          delete file.sessions[platformUrl];
        }),
    },
    bindings: {
      find: async (profile) => (await read(fileOf(profile))).platformUrl,
      bind: (profile, platformUrl) =>
        change(profile, (file) => {
          file.platformUrl = platformUrl;
        }),
    },
    exclusively: async (profile, work) => {
      await prepare(directory);
      return exclusively(join(directory, `${profile}.lock`), work);
    },
  };
}

async function prepare(directory: string): Promise<void> {
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    await chmod(directory, 0o700); // it may have been there before, with wider rights
  } catch (error) {
    throw failure(`The session cannot be kept in ${directory}: ${reason(error)}.`, error);
  }
}

async function read(path: string): Promise<ProfileFile> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw failure(`${path} cannot be read: ${reason(error)}.`, error);
  });
  if (text === undefined) return { sessions: {} };
  const file = parse(text);
  if (!file) throw failure(`${path} is damaged; delete it and sign in again with \`andromeda auth login\`.`);
  return file;
}

function parse(text: string): ProfileFile | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (!isObject(value) || !isObject(value.sessions)) return undefined;
    const file: ProfileFile = { sessions: {} };
    if (typeof value.platformUrl === 'string') file.platformUrl = value.platformUrl;
    for (const [platformUrl, stored] of Object.entries(value.sessions)) {
      const session = parseSession(stored);
      // Under another environment's key, its token would go to the wrong place.
      if (!session || session.platformUrl !== platformUrl) return undefined;
      file.sessions[platformUrl] = session;
    }
    return file;
  } catch {
    return undefined;
  }
}

async function write(path: string, file: ProfileFile): Promise<void> {
  await writeWhole(path, `${JSON.stringify(file, null, 2)}\n`).catch((error: unknown) => {
    throw failure(`The session could not be written to ${path}: ${reason(error)}.`, error);
  });
}

function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
