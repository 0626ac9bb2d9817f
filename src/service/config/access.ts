/** How long access lasts, and with which keys (`access`, and two settings of `gateway`). */
import type { AccessPolicy } from '../../domain/access/lapse.ts';
import { present } from '../../domain/present.ts';
import { invalid } from './named-files.ts';
import { duration, flag, integer, section, type Value } from './schema.ts';

const days = duration('days', 1, 36_500);

export const accessSchema = section({
  maxHoursWithoutSignIn: duration('hours', 0.25, 876_000),
  maxDaysWithoutSignIn: days,
  endOpenSessions: flag,
  keyMaxDays: days,
  reviewMonths: integer(1, 36),
});

interface KeySettings {
  securityKeys?: boolean;
  requireSecurityKeys?: 'none' | 'staff';
}

/**
 * One rule in hours. In days, as earlier versions had it, it ends open sessions unless the file says otherwise. `consoleUrl`: where
 * people sign in anew.
 */
export function readAccess(
  access: Value<typeof accessSchema> = {},
  { securityKeys = false, requireSecurityKeys = 'none' }: KeySettings = {},
  consoleUrl?: string,
): AccessPolicy {
  const {
    maxHoursWithoutSignIn: hours,
    maxDaysWithoutSignIn: days,
    endOpenSessions,
    keyMaxDays,
    reviewMonths,
  } = access;
  if (hours !== undefined && days !== undefined)
    throw invalid('access: give maxHoursWithoutSignIn or maxDaysWithoutSignIn, not both.');
  if (requireSecurityKeys === 'staff' && !securityKeys)
    throw invalid(
      'gateway.requireSecurityKeys is staff, and security keys are not accepted: nobody on the staff could log in. Set gateway.securityKeys: true as well.',
    );
  return present({
    maxHoursWithoutSignIn: hours ?? (days && days * 24),
    endOpenSessions: endOpenSessions ?? (days === undefined ? undefined : true),
    keyMaxDays,
    reviewMonths,
    signInUrl: consoleUrl && `${consoleUrl}/in`,
    securityKeys: securityKeys || undefined,
    requireSecurityKeys: requireSecurityKeys === 'staff' ? requireSecurityKeys : undefined,
  });
}
