/**
 * "slow_down" for devices that ask too often (RFC 8628, section 3.5); oidc-provider never sends it. Only answers of
 * `authorization_pending` are counted, so a guessed device code takes no memory here and an approved one is never
 * held back.
 */
import { createHash } from 'node:crypto';
import type { KoaContextWithOIDC } from 'oidc-provider';
import type { Limit, Limits } from '../../../../lib/limits.ts';

/** Seconds between two polls, as the device authorization response names them (section 3.2). */
const pollInterval = 5;
/** Networks and timers are not exact: a device that waits five seconds may be seen after a little less. */
const toleranceMs = 500;

const spacingMs = pollInterval * 1000 - toleranceMs;
const polls: Limit = {
  name: 'polls of device',
  backOff: { free: 1, firstMs: spacingMs, mostMs: spacingMs, forgetMs: 10 * 60_000 },
};

/** Whether a device code was polled less than the interval ago; counts this poll. */
function isTooSoon(limits: Limits, deviceCode: string): Promise<boolean> {
  const key = createHash('sha256').update(deviceCode).digest('base64url');
  return limits.change({ poll: { limit: polls, key } }, ({ poll }) => {
    const tooSoon = poll.waitMs() > 0;
    poll.use();
    return tooSoon;
  });
}

/** Middleware around the library: adds `interval` to the device authorization response and answers `slow_down`. */
export function pollingMiddleware(limits: Limits) {
  return async (ctx: KoaContextWithOIDC, next: () => Promise<unknown>): Promise<void> => {
    await next();
    const body: unknown = ctx.body;
    if (typeof body !== 'object' || body === null) return;
    if ('device_code' in body) ctx.body = { ...body, interval: pollInterval };
    if (!('error' in body) || body.error !== 'authorization_pending') return;
    const deviceCode = ctx.oidc.params?.device_code;
    if (typeof deviceCode !== 'string' || !(await isTooSoon(limits, deviceCode))) return;
    const error_description = `Wait at least ${pollInterval} seconds between two requests.`;
    ctx.body = { error: 'slow_down', error_description };
  };
}
