/**
 * Sessions on this machine: in the operating system's credential store, or in the profile's file where there is none
 * (a headless login). `ANDROMEDA_CREDENTIAL_STORE` decides; without it, a sign-in takes the first that will do, and
 * what follows from it stays there.
 */
import { dirname, join } from 'node:path';
import { commandIo } from '../../lib/command-io.ts';
import type { Selection } from '../environment.ts';
import { CliError, failure, usage } from '../exit.ts';
import { parseJson } from '../net/request.ts';
import { printMessage } from '../output.ts';
import { exclusively } from './lock.ts';
import {
  needsRefresh,
  type ProfileFile,
  parseSession,
  prepareDirectory,
  readProfile,
  type Session,
  type SessionKey,
  setAsideDamaged,
  stateDirectory,
  writeProfile,
} from './session.ts';

export type LocalState = ReturnType<typeof openLocalState>;

/**
 * Throws `usage` when the environment names another store than the two. `put` and `delete` may be called again with the same
 * arguments. Writers hold the profile's lock (`exclusively`), since a refresh is a read, a request and a write that belong
 * together.
 */
export function openLocalState() {
  const directory = stateDirectory();
  const chosen = chosenStore();
  const fileOf = (profile: string) => join(directory, `${profile}.json`);

  const locate = async ({ profile, platformUrl }: SessionKey) => {
    const file = await readProfile(fileOf(profile));
    const isInKeyring = file.inKeyring.includes(platformUrl) && chosen !== 'file';
    return { isInKeyring, session: file.sessions[platformUrl] };
  };

  return {
    async get(key: SessionKey): Promise<Session | undefined> {
      const { isInKeyring, session } = await locate(key);
      return isInKeyring ? readKeyring(key) : session;
    },
    async has(key: SessionKey): Promise<boolean> {
      const { isInKeyring, session } = await locate(key);
      return isInKeyring || session !== undefined;
    },
    async put(profile: string, session: Session): Promise<void> {
      const { platformUrl } = session;
      const known = await locate({ profile, platformUrl });
      const store = chosen ?? (known.session && 'file');
      const isStored = store !== 'file' && (await putInKeyring(session, profile, fileOf(profile), store));
      await change(fileOf(profile), (file) => {
        forget(file, platformUrl);
        if (isStored) file.inKeyring.push(platformUrl);
        else file.sessions[platformUrl] = session;
      });
    },
    async delete(key: SessionKey): Promise<void> {
      const { isInKeyring } = await locate(key);
      if (isInKeyring) await (await keyring()).deleteSecret(accountOf(key));
      await change(fileOf(key.profile), (file) => forget(file, key.platformUrl));
    },
    boundTo: async (profile: string) => (await readProfile(fileOf(profile))).platformUrl,
    bind: (profile: string, platformUrl: string) =>
      change(fileOf(profile), (file) => Object.assign(file, { platformUrl })),
    /** Renames the profile's file if it is damaged; returns its new name where it was. */
    setAsideDamaged: (profile: string) => setAsideDamaged(fileOf(profile)),
    /** Runs `work` while no other process of this user changes the profile. */
    async exclusively<T>(profile: string, work: () => Promise<T>): Promise<T> {
      await prepareDirectory(directory);
      return exclusively(join(directory, `${profile}.lock`), work);
    },
  };
}

async function change(path: string, edit: (file: ProfileFile) => void): Promise<void> {
  const file = await readProfile(path);
  edit(file);
  await prepareDirectory(dirname(path));
  await writeProfile(path, file);
}

function forget(file: ProfileFile, platformUrl: string): void {
  file.inKeyring = file.inKeyring.filter((url) => url !== platformUrl);
  delete file.sessions[platformUrl];
}

/** Whether the credential store has it now. Where it need not be there, prints why it is not, and where it is. */
async function putInKeyring(
  session: Session,
  profile: string,
  file: string,
  store: 'keyring' | undefined,
): Promise<boolean> {
  try {
    await (await keyring()).putSecret(accountOf({ ...session, profile }), JSON.stringify(session));
    return true;
  } catch (error) {
    if (store === 'keyring' || !(error instanceof Error)) throw error;
    printMessage(`${error.message} The session is kept in ${file}, which only you can read.`);
    return false;
  }
}

function chosenStore(): 'keyring' | 'file' | undefined {
  const store = commandIo().env.ANDROMEDA_CREDENTIAL_STORE || undefined;
  if (store === undefined || store === 'keyring' || store === 'file') return store;
  throw usage(`ANDROMEDA_CREDENTIAL_STORE is '${store}'; it may be keyring or file.`);
}

/** Native code, loaded only where sessions are stored there. */
function keyring() {
  return import('./keyring.ts');
}

async function readKeyring(key: SessionKey): Promise<Session | undefined> {
  const secret = await (await keyring()).findSecret(accountOf(key)).catch((error: Error) => {
    const fix = 'Your session is in it; `andromeda auth login` makes one that is not.';
    throw failure(`${error.message} ${fix}`, error);
  });
  const session = parseSession(parseJson(secret ?? ''));
  // Another environment's token would be sent to the wrong server.
  return session?.platformUrl === key.platformUrl ? session : undefined;
}

function accountOf({ profile, platformUrl }: SessionKey): string {
  return `${profile} ${platformUrl}`;
}

export function sessionEnded(selection: Selection): CliError {
  return signInFirst(`Your session has ended; sign in again with \`${loginCommand(selection)}\`.`);
}

function signInFirst(sentence: string): CliError {
  return new CliError('notSignedIn', sentence);
}

/** The command that makes a session for this selection. */
function loginCommand({ profile, url }: Selection): string {
  const where = profile === 'default' ? '' : ` --profile ${profile}`;
  const at = url === undefined ? '' : ` --url ${url}`;
  return `andromeda auth login${where}${at}`;
}

/** The environment of this command: the one named for it, else the one the profile is bound to. */
export async function findKey(
  state: LocalState,
  { profile, url }: Selection,
): Promise<SessionKey | undefined> {
  const platformUrl = url ?? (await state.boundTo(profile));
  return platformUrl === undefined ? undefined : { profile, platformUrl };
}

/** The stored session, as it is. Throws where there is none. */
export async function storedSession(state: LocalState, selection: Selection): Promise<Session> {
  const key = await findKey(state, selection);
  const session = key && (await state.get(key));
  if (!session) throw notSignedIn(key, selection);
  return session;
}

/**
 * A session with an access token that is good for a request, refreshed when it has to be (contract, "Session
 * storage"). Issuers take a refresh token once: a second process waits for the lock and then finds the
 * session that the first has stored.
 */
export async function freshSession(state: LocalState, selection: Selection): Promise<Session> {
  const session = await storedSession(state, selection);
  if (!needsRefresh(session)) return session;
  return state.exclusively(selection.profile, async () => {
    const latest = await storedSession(state, selection);
    return needsRefresh(latest) ? refresh(state, selection, latest) : latest;
  });
}

async function refresh(state: LocalState, selection: Selection, session: Session): Promise<Session> {
  const { profile } = selection;
  if (session.refreshToken === undefined) throw sessionEnded(selection);
  const { refreshTokens } = await import('../net/issuer.ts');
  const tokens = await refreshTokens(session, session.refreshToken, session.resource);
  if (tokens === 'refused') {
    const { refreshToken: _refused, ...ended } = session;
    await state.put(profile, ended);
    throw sessionEnded(selection);
  }
  const refreshed = { ...session, ...tokens };
  await state.put(profile, refreshed);
  return refreshed;
}

function notSignedIn(key: SessionKey | undefined, selection: Selection): CliError {
  const command = loginCommand(selection);
  if (!key) return signInFirst(`You are not signed in; run \`${command} --url <platform_url>\`.`);
  return signInFirst(`You are not signed in to ${key.platformUrl}; run \`${command}\`.`);
}
