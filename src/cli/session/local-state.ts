/**
 * Sessions on this machine: in the operating system's credential store, or in the profile's file where there is none
 * (a headless login). `ANDROMEDA_CREDENTIAL_STORE` decides; without it, a sign-in takes the first that will do, and
 * what follows from it stays there.
 */
import { join } from 'node:path';
import type { Selection } from '../environment.ts';
import { CliError, failure, usage } from '../exit.ts';
import { printMessage } from '../output.ts';
import { exclusively } from './lock.ts';
import {
  type Bindings,
  needsRefresh,
  type ProfileFile,
  parseSession,
  prepareDirectory,
  readProfile,
  type Session,
  type SessionKey,
  type SessionStore,
  setAsideDamaged,
  stateDirectory,
  writeProfile,
} from './session.ts';

export interface LocalState {
  sessions: SessionStore;
  bindings: Bindings;
  /** Renames the profile's file if it is damaged; returns its new name where it was. */
  setAsideDamaged(profile: string): Promise<string | undefined>;
  /** Runs `work` while no other process of this user changes the profile. */
  exclusively<T>(profile: string, work: () => Promise<T>): Promise<T>;
}

/** Throws `usage` when the environment names another store than the two. */
export function openLocalState(env = process.env): LocalState {
  const directory = stateDirectory(env);
  const chosen = chosenStore(env);
  const fileOf = (profile: string) => join(directory, `${profile}.json`);

  const change = async (profile: string, edit: (file: ProfileFile) => void) => {
    const file = await readProfile(fileOf(profile));
    edit(file);
    await prepareDirectory(directory);
    await writeProfile(fileOf(profile), file);
  };
  const locate = async ({ profile, platformUrl }: SessionKey) => {
    const file = await readProfile(fileOf(profile));
    const isInKeyring = file.inKeyring.includes(platformUrl);
    return { isInKeyring: isInKeyring && chosen !== 'file', session: file.sessions[platformUrl] };
  };

  return {
    sessions: {
      async get(key) {
        const { isInKeyring, session } = await locate(key);
        return isInKeyring ? readKeyring(key) : session;
      },
      async has(key) {
        const { isInKeyring, session } = await locate(key);
        return isInKeyring || session !== undefined;
      },
      async put(profile, session) {
        const { platformUrl } = session;
        const known = await locate({ profile, platformUrl });
        const store = chosen ?? (known.session && 'file');
        const isStored =
          store === 'file' ? false : await storeInKeyring(profile, session, store === 'keyring');
        await change(profile, (file) => {
          file.inKeyring = file.inKeyring.filter((url) => url !== platformUrl);
          delete file.sessions[platformUrl];
          if (isStored) file.inKeyring.push(platformUrl);
          else file.sessions[platformUrl] = session;
        });
      },
      async delete(key) {
        const { isInKeyring } = await locate(key);
        if (isInKeyring) await (await keyring()).deleteSecret(accountOf(key));
        await change(key.profile, (file) => {
          file.inKeyring = file.inKeyring.filter((url) => url !== key.platformUrl);
          delete file.sessions[key.platformUrl];
        });
      },
    },
    bindings: {
      find: async (profile) => (await readProfile(fileOf(profile))).platformUrl,
      bind: (profile, platformUrl) =>
        change(profile, (file) => {
          file.platformUrl = platformUrl;
        }),
    },
    setAsideDamaged: (profile) => setAsideDamaged(fileOf(profile)),
    exclusively: async (profile, work) => {
      await prepareDirectory(directory);
      return exclusively(join(directory, `${profile}.lock`), work);
    },
  };

  /** Whether the credential store has it now. Where it need not be there, prints why it is not. */
  async function storeInKeyring(profile: string, session: Session, isRequired: boolean): Promise<boolean> {
    const account = accountOf({ profile, platformUrl: session.platformUrl });
    try {
      await (await keyring()).putSecret(account, JSON.stringify(session));
      return true;
    } catch (error) {
      if (isRequired || !(error instanceof Error)) throw error;
      printMessage(`${error.message} The session is kept in ${fileOf(profile)}, which only you can read.`);
      return false;
    }
  }
}

function chosenStore(env: NodeJS.ProcessEnv): 'keyring' | 'file' | undefined {
  const store = env.ANDROMEDA_CREDENTIAL_STORE || undefined;
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

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The error when a session cannot be refreshed. */
export function sessionEnded(): CliError {
  return signInFirst('Your session has ended; sign in again with `andromeda auth login`.');
}

function signInFirst(sentence: string): CliError {
  return new CliError('notSignedIn', sentence);
}

/** The environment of this command: the one named for it, else the one the profile is bound to. */
export async function findKey(
  state: LocalState,
  { profile, url }: Selection,
): Promise<SessionKey | undefined> {
  const platformUrl = url ?? (await state.bindings.find(profile));
  return platformUrl === undefined ? undefined : { profile, platformUrl };
}

/** The stored session, as it is. */
export async function storedSession(state: LocalState, selection: Selection): Promise<Session | undefined> {
  const key = await findKey(state, selection);
  return key && state.sessions.get(key);
}

/**
 * A session with an access token that is good for a request, refreshed when it has to be (contract, "Session
 * storage"). Issuers take a refresh token once: a second process waits for the lock and then finds the
 * session that the first has stored.
 */
export async function freshSession(
  state: LocalState,
  selection: Selection,
  now: () => number,
): Promise<Session> {
  const session = await storedSession(state, selection);
  if (!session) throw notSignedIn(await findKey(state, selection), selection);
  if (!needsRefresh(session, now())) return session;
  return state.exclusively(selection.profile, async () => {
    const latest = await storedSession(state, selection);
    if (!latest) throw notSignedIn(await findKey(state, selection), selection);
    if (!needsRefresh(latest, now())) return latest;
    return refresh(state, selection.profile, latest, now);
  });
}

async function refresh(
  state: LocalState,
  profile: string,
  session: Session,
  now: () => number,
): Promise<Session> {
  if (session.refreshToken === undefined) throw sessionEnded();
  const { refreshTokens } = await import('../net/issuer.ts');
  const tokens = await refreshTokens(session, session.refreshToken, session.resource, now);
  if (tokens === 'refused') {
    const { refreshToken: _refused, ...ended } = session;
    await state.sessions.put(profile, ended);
    throw sessionEnded();
  }
  const refreshed = { ...session, ...tokens };
  await state.sessions.put(profile, refreshed);
  return refreshed;
}

/** The error when there is no session. */
export function notSignedIn(key: SessionKey | undefined, { profile, url }: Selection): CliError {
  const where = profile === 'default' ? '' : ` --profile ${profile}`;
  if (!key)
    return signInFirst(`You are not signed in; run \`andromeda auth login${where} --url <platform_url>\`.`);
  const at = url === undefined ? '' : ` --url ${key.platformUrl}`;
  return signInFirst(
    `You are not signed in to ${key.platformUrl}; run \`andromeda auth login${where}${at}\`.`,
  );
}
