/**
 * "slow_down" for devices that ask too often (RFC 8628, section 3.5); oidc-provider never says it. Only answers of
 * `authorization_pending` are counted, so a guessed device code takes no memory here and an approved one is never
 * held back.
 */
import { createHash } from 'node:crypto';
import type { KoaContextWithOIDC } from 'oidc-provider';

/** Seconds between two polls, as the device authorization response says it (section 3.2). */
export const pollInterval = 5;
/** Networks and timers are not exact: a device that waits five seconds may be seen after a little less. */
const toleranceMs = 500;
const forgetAfterMs = 10 * 60_000;
const mostCodes = 10_000;

/** Answers whether a device code was polled less than the interval ago, and remembers this poll. */
export function createPollGuard(now: () => number): (deviceCode: string) => boolean {
  const polls = new Map<string, number>();
  return (deviceCode) => {
    const at = now();
    const key = createHash('sha256').update(deviceCode).digest('base64url');
    const last = polls.get(key);
    // Deleted and set again, the keys stay in the order of their last poll: the oldest is the first.
    polls.delete(key);
    polls.set(key, at);
    for (const [oldest, polledAt] of polls) {
      if (polls.size <= mostCodes && at - polledAt < forgetAfterMs) break;
      polls.delete(oldest);
    }
    return last !== undefined && at - last < pollInterval * 1000 - toleranceMs;
  };
}

/** Middleware around the library: adds `interval` to the device authorization response and says `slow_down`. */
export function pollingMiddleware(now: () => number) {
  const polledTooSoon = createPollGuard(now);
  return async (ctx: KoaContextWithOIDC, next: () => Promise<unknown>): Promise<void> => {
    await next();
    const body: unknown = ctx.body;
    if (typeof body !== 'object' || body === null) return;
    if ('device_code' in body) ctx.body = { ...body, interval: pollInterval };
    if (!('error' in body) || body.error !== 'authorization_pending') return;
    const deviceCode = ctx.oidc.params?.device_code;
    if (typeof deviceCode !== 'string' || !polledTooSoon(deviceCode)) return;
    const error_description = `Wait at least ${pollInterval} seconds between two requests.`;
    ctx.body = { error: 'slow_down', error_description };
  };
}
