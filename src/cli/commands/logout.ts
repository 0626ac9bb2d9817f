/** `andromeda auth logout`: ends the session at the issuer (RFC 7009) and here. */
import { messageOf } from '../../lib/error-message.ts';
import { type EnvironmentOptions, selectEnvironment } from '../environment.ts';
import type { Outcome } from '../exit.ts';
import { print, printMessage } from '../output.ts';
import { findKey } from '../session/current.ts';
import { openLocalState } from '../session/local-state.ts';
import type { Session } from '../session/session.ts';

/** Deletes the session, whatever the issuer answers. Nothing to delete is no failure. */
export async function logout(options: EnvironmentOptions): Promise<Outcome> {
  const selection = selectEnvironment(options);
  const state = openLocalState();
  const aside = await state.setAsideDamaged(selection.profile);
  if (aside !== undefined) {
    printMessage(`The session file was damaged, and is kept as ${aside}; what was in it is not revoked.`);
  }
  const key = await findKey(state, selection);
  const nothing = () => print(`Not signed in${key ? ` to ${key.platformUrl}` : ''}; nothing to do.`);
  if (!key || !(await state.sessions.get(key))) {
    nothing();
    return 'ok';
  }
  // Under the lock, or a refresh elsewhere could replace the token between reading and revoking it.
  await state.exclusively(selection.profile, async () => {
    const session = await state.sessions.get(key);
    if (!session) return nothing();
    try {
      await revoke(session);
    } catch (error) {
      printMessage(
        `The session was deleted here, but could not be revoked at the issuer: ${messageOf(error)}`,
      );
    } finally {
      await state.sessions.delete(key);
    }
    print(`Signed out of ${key.platformUrl}`);
  });
  return 'ok';
}

/** Revoking the refresh token ends the grant; without one, the access token is what there is. */
async function revoke(session: Session): Promise<void> {
  const { revokeToken } = await import('../net/issuer.ts');
  if (session.refreshToken !== undefined) await revokeToken(session, session.refreshToken, 'refresh_token');
  else await revokeToken(session, session.accessToken, 'access_token');
}
