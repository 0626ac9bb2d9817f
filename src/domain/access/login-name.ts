/** The name under which a person logs in at the gateway (contract, "SSH gateway behaviour"). */
import { isUuid } from '../id.ts';

/** `<cluster-id>.<username>` has no more characters. */
export const longestLoginName = 36 + 1 + 32;

/** `<cluster-id>.<username>` taken apart; undefined when it is not of that form. */
export function parseLoginName(loginName: string): { clusterId: string; username: string } | undefined {
  const clusterId = loginName.slice(0, 36);
  const username = loginName.slice(37);
  if (!isUuid(clusterId) || loginName.charAt(36) !== '.' || !/^[a-z][a-z0-9_-]{0,31}$/.test(username)) {
    return undefined;
  }
  return { clusterId: clusterId.toLowerCase(), username };
}
