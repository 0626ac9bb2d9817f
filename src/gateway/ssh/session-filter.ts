/** Which sessions are meant. */
import type { Route } from './decision.ts';

/** Sessions that match every field given; all of them when none is. */
export interface SessionFilter {
  id?: string;
  clusterId?: string;
  userId?: string;
  keyId?: string;
  /** "host:port" */
  loginNode?: string;
}

/** What of a session a filter looks at. A login that is no session yet has no ID, and could get any. */
export type Filtered = Pick<Route, 'clusterId' | 'userId' | 'keyId'> & { id?: string; loginNode: string };

export function filteredOf({ clusterId, userId, keyId, loginNode }: Route): Filtered {
  return { clusterId, userId, keyId, loginNode: `${loginNode.host}:${loginNode.port}` };
}

export function matches(session: Filtered, filter: SessionFilter): boolean {
  const { id, clusterId, userId, keyId, loginNode } = filter;
  return (
    (id === undefined || session.id === undefined || id === session.id) &&
    (clusterId === undefined || clusterId === session.clusterId) &&
    (userId === undefined || userId === session.userId) &&
    (keyId === undefined || keyId === session.keyId) &&
    (loginNode === undefined || loginNode === session.loginNode)
  );
}
