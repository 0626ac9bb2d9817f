/** Somebody who logs in every so often by way of HAProxy, and at once a second time where the first attempt failed. */
import { type Person, ssh } from './person.ts';
import { startTries, type Tries } from './tries.ts';

export type Logins = Tries;

const limitMs = 15_000;
const connectSeconds = 10;

export function startLogins(person: Person, { everyMs, slack }: { everyMs: number; slack: number }): Logins {
  const connect = ['-o', `ConnectTimeout=${connectSeconds * slack}`];
  const command = [...connect, ...person.to(), 'true'];
  return startTries(everyMs, () => async () => {
    const { status, err } = await ssh(command, limitMs * slack);
    return status === 0 ? undefined : err.trim().replaceAll('\n', ' ') || `status ${status}`;
  });
}
