/**
 * The groups that an issuer says a person is in: a claim of access tokens, or of userinfo, that is a list of names. Anything else in
 * its place says nothing of groups, so that nothing is given or taken for it.
 */
import { storedText } from '../text.ts';

export interface GroupClaim {
  issuer: string;
  claim: string;
}

export type SaidGroups =
  /** Each once, in order. */
  | { kind: 'groups'; groups: readonly string[] }
  | { kind: 'absent' }
  /** It is there, or should be, and cannot be taken over: why, for operators. */
  | { kind: 'fault'; fault: string };

const mostGroups = 10_000;
/** In UTF-16 units. */
export const longestGroup = 256;

export function readGroups(claims: Readonly<Record<string, unknown>>, claim: string): SaidGroups {
  if (hasOverage(claims, claim)) {
    return fault(
      `The issuer sends a link in the place of the claim ${claim}, as there are too many groups for a token (overage). Have it send only groups that are assigned to the application.`,
    );
  }
  const value = Object.hasOwn(claims, claim) ? claims[claim] : undefined;
  if (value === undefined) return { kind: 'absent' };
  if (!Array.isArray(value)) return fault(`The claim ${claim} is not a list.`);
  if (value.length > mostGroups) return fault(`The claim ${claim} has more than ${mostGroups} groups.`);
  if (!value.every(isGroupName)) {
    return fault(`The claim ${claim} is not a list of texts of 1 to ${longestGroup} characters.`);
  }
  return { kind: 'groups', groups: [...new Set(value)].sort() };
}

/** Whether it can be the name of a group, as an issuer sends it and a rule names it. */
export function isGroupName(value: unknown): value is string {
  return (
    typeof value === 'string' && value !== '' && value.length <= longestGroup && storedText(value) === value
  );
}

/**
 * Microsoft Entra's way to say that there are more groups than a token holds: `_claim_names` names the claim (OpenID Connect Core
 * 1.0, 5.6.2: distributed claims), or `hasgroups` is true.
 */
function hasOverage(claims: Readonly<Record<string, unknown>>, claim: string): boolean {
  const { _claim_names: names, hasgroups } = claims;
  const isLinked = typeof names === 'object' && names !== null && Object.hasOwn(names, claim);
  const isAbsent = !Object.hasOwn(claims, claim);
  return isLinked || (isAbsent && (hasgroups === true || hasgroups === 'true'));
}

function fault(fault: string): SaidGroups {
  return { kind: 'fault', fault };
}
