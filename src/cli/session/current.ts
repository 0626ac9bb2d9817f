/** The session a command works with: chosen, and fresh enough for a request. */
import type { Selection } from '../environment.ts';
import { CliError } from '../exit.ts';
import type { LocalState } from './local-state.ts';
import { needsRefresh, type Session, type SessionKey } from './session.ts';

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
