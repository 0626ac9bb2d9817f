/** `andromeda auth status`: what is stored, without asking anyone. */

import { visibleLine } from '../../domain/visible-text.ts';
import { printAnswer } from '../answer.ts';
import { type EnvironmentOptions, selectEnvironment } from '../environment.ts';
import type { Outcome } from '../exit.ts';
import { findKey, notSignedIn, sessionEnded, storedSession } from '../session/current.ts';
import { openLocalState } from '../session/local-state.ts';
import { nameOf, type Session } from '../session/session.ts';

/** Prints who is signed in, where, and until when. Exits 1 when nobody is. */
export async function status({
  output,
  ...options
}: EnvironmentOptions & { output?: string }): Promise<Outcome> {
  const selection = selectEnvironment(options);
  const state = openLocalState();
  const session = await storedSession(state, selection);
  if (!session) throw notSignedIn(await findKey(state, selection), selection);
  const expired = session.expiresAt !== undefined && Date.parse(session.expiresAt) <= Date.now();
  if (expired && session.refreshToken === undefined) throw sessionEnded();

  const { user, platformUrl, businessUrl, issuer, expiresAt, refreshToken } = session;
  const { profile } = selection;
  const text = [
    user ? `Signed in as ${nameOf(user)}` : 'Signed in',
    `Environment   ${platformUrl}`,
    `Profile       ${profile}`,
    `Access token  ${lifetime(session, expired)}`,
  ].join('\n');
  const refreshable = refreshToken !== undefined;
  await printAnswer(
    { json: { user, profile, platformUrl, businessUrl, issuer, expiresAt, refreshable }, text },
    output,
  );
  return 'ok';
}

function lifetime({ expiresAt, refreshToken }: Session, expired: boolean): string {
  if (expiresAt === undefined) return 'valid until the issuer ends it';
  const refresh = refreshToken === undefined ? 'then sign in again' : 'refreshed when needed';
  return `${expired ? 'expired' : 'valid until'} ${visibleLine(expiresAt)}, ${refresh}`;
}
