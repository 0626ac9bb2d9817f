/** The lifetime of access, and the keys it requires (`access`, and two settings of `gateway`). */
import type { AccessPolicy } from '../../domain/access/lapse.ts';
import { present } from '../../domain/present.ts';
import { invalid } from './named-files.ts';
import { duration, flag, integer, section, type Value } from './schema.ts';

const days = duration('days', 1, 36_500);

export const accessSchema = section({
  maxHoursWithoutSignIn: duration('hours', 0.25, 876_000),
  endOpenSessions: flag,
  keyMaxDays: days,
  reviewMonths: integer(1, 36),
});

interface KeySettings {
  securityKeys?: boolean;
  requireSecurityKeys?: 'none' | 'staff';
}

export function readAccess(
  access: Value<typeof accessSchema> = {},
  { securityKeys = false, requireSecurityKeys = 'none' }: KeySettings = {},
  consoleUrl?: string,
): AccessPolicy {
  if (requireSecurityKeys === 'staff' && !securityKeys)
    throw invalid(
      'gateway.requireSecurityKeys is staff, and security keys are not accepted: nobody on the staff could log in. Set gateway.securityKeys: true as well.',
    );
  return present({
    ...access,
    signInUrl: consoleUrl && `${consoleUrl}/in`,
    securityKeys: securityKeys || undefined,
    requireSecurityKeys: requireSecurityKeys === 'staff' ? requireSecurityKeys : undefined,
  });
}
