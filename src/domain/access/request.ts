/** Access requests: the requested permissions, the time after which an open request lapses, and its outcome. */
import { invalidState } from '../error.ts';
import { type GrantedPermission, type Holdings, withLatestEnds } from './permission.ts';

export interface AccessRequest {
  id: string;
  organizationId: string;
  userId: string;
  email: string;
  /** The cluster that the request is about; null for none. */
  clusterId: string | null;
  permissions: readonly string[];
  /** Hours from the approval on; null: without an end. */
  hours: number | null;
  reason: string;
  state: 'open' | 'approved' | 'declined' | 'withdrawn';
  createdAt: string;
  decidedAt: string | null;
  decidedBy: string | null;
  decisionReason: string | null;
  /** The end of the approved permissions; null: approved without an end, or not approved. */
  expiresAt: string | null;
}

const mostOpenRequests = 5;
const lapseMs = 14 * 86_400_000;
const hourMs = 3_600_000;

/** Open requests from before this time (ms since 1970) have lapsed. */
export function requestsLapseBefore(now: number): number {
  return now - lapseMs;
}

export function requestLapsesAt({ createdAt }: Pick<AccessRequest, 'createdAt'>): number {
  return Date.parse(createdAt) + lapseMs;
}

export function requestState(
  request: Pick<AccessRequest, 'state' | 'createdAt'>,
  now: number,
): AccessRequest['state'] | 'lapsed' {
  return request.state === 'open' && requestLapsesAt(request) <= now ? 'lapsed' : request.state;
}

/** True if approved permissions were taken away before their end. */
export function isTakenAway(
  { state, permissions, expiresAt }: Pick<AccessRequest, 'state' | 'permissions' | 'expiresAt'>,
  held: Pick<Holdings, 'has'>,
  now: number,
): boolean {
  const hasEnded = expiresAt !== null && Date.parse(expiresAt) <= now;
  return state === 'approved' && !hasEnded && !permissions.every((key) => held.has(key));
}

/** Throws `invalid_state` for a request that is decided, withdrawn or lapsed. */
export function requireOpenRequest(request: AccessRequest, now: number): void {
  const state = requestState(request, now);
  if (state === 'open') return;
  const by = request.decidedBy === null ? '' : ` by ${request.decidedBy}`;
  const texts = {
    approved: `was approved already${by}`,
    declined: `was declined already${by}`,
    withdrawn: 'was withdrawn',
    lapsed: 'has lapsed: nobody decided within 14 days',
  };
  throw invalidState(`This request ${texts[state]}.`);
}

/** Throws `invalid_state` if the member holds all of it, has asked for the same, or has too many open requests. */
export function requireWorthAsking(
  wanted: Pick<AccessRequest, 'permissions' | 'clusterId'>,
  held: Holdings,
  open: readonly AccessRequest[],
): void {
  if (wanted.permissions.every((key) => held.has(key) && held.endOf(key) === null)) {
    throw invalidState(`You hold ${wanted.permissions.join(', ')} already, without an end.`);
  }
  const same = open.find(
    (one) => one.clusterId === wanted.clusterId && one.permissions.join() === wanted.permissions.join(),
  );
  if (same) throw invalidState(`You have asked for this already (${same.id}), and nobody has decided yet.`);
  if (open.length >= mostOpenRequests) {
    throw invalidState(`${open.length} requests of yours are open. Withdraw one, or wait for a decision.`);
  }
}

export function approvedEnd(
  { hours }: Pick<AccessRequest, 'hours'>,
  term: string | null | undefined,
  now: number,
): string | null {
  if (term !== undefined) return term;
  return hours === null ? null : new Date(now + hours * hourMs).toISOString();
}

/** A member's permissions after an approval until `end`; a later end of their own stays. */
export function withApproved(
  before: readonly GrantedPermission[],
  keys: readonly string[],
  end: string | null,
): GrantedPermission[] {
  return withLatestEnds([...before, ...keys.map((key) => ({ key, expiresAt: end }))]);
}

/** `clusters.ssh for 7 days` */
export function requestText({ permissions, hours }: Pick<AccessRequest, 'permissions' | 'hours'>): string {
  return `${permissions.join(', ')} ${termText(hours)}`;
}

/** `for 4 hours`, `for 7 days`, `without an end` */
export function termText(hours: number | null | undefined): string {
  if (hours == null) return 'without an end';
  const [count, unit] = hours % 24 === 0 ? [hours / 24, 'day'] : [hours, 'hour'];
  return `for ${count} ${unit}${count === 1 ? '' : 's'}`;
}
