/** Access requests: members ask for permissions for a time, and someone who may grant them decides. */
import { grantedText, type Holdings, heldUntil, requireMayGrant } from '../../domain/access/permission.ts';
import {
  type AccessRequest,
  approvedEnd,
  isTakenAway,
  requestLapsesAt,
  requestState,
  requestText,
  requireOpenRequest,
  requireWorthAsking,
  withApproved,
} from '../../domain/access/request.ts';
import { isInService } from '../../domain/clusters/cluster.ts';
import { type DomainError, forbidden, invalidRequest, invalidState, notFound } from '../../domain/error.ts';
import { present, snakeCased } from '../../domain/present.ts';
import { cutText } from '../../domain/text.ts';
import { requireClusterOf } from '../../store/clusters/clusters.ts';
import type { Reader, Tx } from '../../store/engine/index.ts';
import { fromTime, toTime } from '../../store/engine/time.ts';
import {
  createAccessRequest,
  findAccessRequest,
  listOpenRequests,
  listRequests,
  updateAccessRequest,
} from '../../store/organizations/access-requests.ts';
import { updateMemberPermissions } from '../../store/organizations/membership-changes.ts';
import { listGrantedPermissions } from '../../store/organizations/memberships.ts';
import { requireActiveOrganization } from '../../store/organizations/organizations.ts';
import { requireHoldings, requireKey, requireOrdinaryMember } from './member-permissions.ts';
import { type BusinessRequest, type Operation, writes } from './operation.ts';
import { ownMembership } from './organizations.ts';

export const listMyAccessRequests: Operation<'listMyAccessRequests'> = async ({ store }, { caller, now }) => {
  const own = await listRequests(store.read, { userId: caller.userId });
  return { requests: await requestBodies(store.read, own, now) };
};

export const listAccessRequests: Operation<'listAccessRequests'> = async (
  { store },
  { caller, path, query, now },
) => {
  await requireHoldings({ db: store.read, now }, path.orgID, caller.userId);
  const requests =
    query.state === 'all'
      ? await listRequests(store.read, { organizationId: path.orgID })
      : await listOpenRequests(store.read, { organizationId: path.orgID }, now);
  return { requests: await requestBodies(store.read, requests, now) };
};

export const requestAccess = writes('requestAccess', (_, { body, caller, command, path }) => {
  const { orgID: organizationId } = path;
  const { userId } = caller;
  const { hours = null } = body;
  const permissions = [...new Set(body.permissions)].sort();
  const clusterId = body.cluster_id?.toLowerCase() ?? null;
  const asked = { organizationId, userId, clusterId, permissions, hours, reason: command.auditReason };
  return {
    meaning: [organizationId, permissions, clusterId, hours],
    about: {
      target: organizationId,
      organizationId,
      subjectUserId: userId,
      details: requestText({ permissions: permissions.map((key) => cutText(key, 80)), hours }),
    },
    async authorize(tx) {
      await ownMembership(tx.db, organizationId, userId, tx.now);
    },
    async apply(tx) {
      permissions.forEach(requireKey);
      await requireActiveOrganization(tx.db, organizationId);
      await requireOrdinaryMember(tx, organizationId, userId);
      if (clusterId !== null) await requireCluster(tx, organizationId, clusterId);
      const held = heldUntil('member', await listGrantedPermissions(tx.db, organizationId, userId, tx.now));
      requireWorthAsking(asked, held, await listOpenRequests(tx.db, asked, tx.now));
      const id = await createAccessRequest(tx, asked);
      return { result: await requestReply(tx, id), about: { target: id, clusterId } };
    },
  };
});

async function requireCluster(tx: Tx, organizationId: string, clusterId: string): Promise<void> {
  const cluster = await requireClusterOf(tx.db, organizationId, clusterId);
  if (!isInService(cluster)) throw invalidState('The cluster is out of service.');
}

export const withdrawAccessRequest = writes('withdrawAccessRequest', (_, { caller: { userId }, path }) => ({
  meaning: [path.requestID],
  about: { target: path.requestID, subjectUserId: userId },
  async apply(tx) {
    const asked = await requireRequest(tx, path.requestID);
    if (asked.userId !== userId) throw requestNotFound();
    // Withdrawing again, or after the lapse, changes nothing and succeeds.
    if (asked.state !== 'withdrawn' && requestState(asked, tx.now) !== 'lapsed') {
      requireOpenRequest(asked, tx.now);
    }
    const withdrawn = { state: 'withdrawn', by: userId, reason: '' } as const;
    if (asked.state === 'open') await updateAccessRequest(tx, asked, withdrawn);
    const about = { ...aboutRequest(asked), details: requestText(asked) };
    return { result: await requestReply(tx, asked.id), about, takesAway: asked.state === 'open' };
  },
}));

export const approveAccessRequest = writes('approveAccessRequest', (_, request) =>
  approving(request, request.command.auditReason),
);

export function approving(
  request: Pick<BusinessRequest<'approveAccessRequest'>, 'caller' | 'path' | 'body'>,
  reason: string,
) {
  const { expires_at: sent } = request.body;
  const term = sent == null ? sent : toTime(fromTime(sent));
  // JSON would not distinguish an absent end from null.
  const meaning = term === null ? 'for good' : term;
  return deciding({ ...request, reason, meaning }, async (tx, asked, held) => {
    const { organizationId, userId, permissions } = asked;
    if (typeof term === 'string' && fromTime(term) <= tx.now) {
      throw invalidRequest('expires_at has passed already.');
    }
    await requireOrdinaryMember(tx, organizationId, userId);
    const expiresAt = approvedEnd(asked, term, tx.now);
    const before = await listGrantedPermissions(tx.db, organizationId, userId, tx.now);
    const after = withApproved(before, permissions, expiresAt);
    requireMayGrant(held, before, after);
    await updateMemberPermissions(tx, { organizationId, userId, permissions: after });
    return {
      decision: { state: 'approved', expiresAt },
      details: `permissions ${grantedText(before)} → ${grantedText(after)}`,
    };
  });
}

export const declineAccessRequest = writes('declineAccessRequest', (_, request) =>
  deciding({ ...request, reason: request.command.auditReason }, async (_tx, asked) => ({
    decision: { state: 'declined' },
    details: requestText(asked),
  })),
);

interface Outcome {
  decision: { state: 'approved' | 'declined'; expiresAt?: string | null };
  details: string;
}

/** A decision on an open request by someone who may set permissions, and is not the requester. */
function deciding(
  request: Pick<BusinessRequest<'declineAccessRequest'>, 'caller' | 'path'> & {
    reason: string;
    meaning?: string | undefined;
  },
  outcomeOf: (tx: Tx, asked: AccessRequest, held: Holdings) => Promise<Outcome>,
) {
  const { caller, reason, meaning } = request;
  const { orgID: organizationId, requestID: id } = request.path;
  return {
    meaning: [organizationId, id, meaning],
    about: { target: id, organizationId },
    async authorize(tx: Tx) {
      await requireHoldings(tx, organizationId, caller.userId);
    },
    async apply(tx: Tx) {
      const held = await requireHoldings(tx, organizationId, caller.userId);
      await requireActiveOrganization(tx.db, organizationId);
      const asked = await requireRequest(tx, id);
      if (asked.organizationId !== organizationId) throw requestNotFound();
      if (asked.userId === caller.userId) {
        throw forbidden('You asked for this yourself: somebody else has to decide.');
      }
      requireOpenRequest(asked, tx.now);
      const { decision, details } = await outcomeOf(tx, asked, held);
      await updateAccessRequest(tx, asked, { ...decision, by: caller.userId, reason });
      return { result: await requestReply(tx, id), about: { ...aboutRequest(asked), details } };
    },
  };
}

function aboutRequest({ organizationId, userId, clusterId }: AccessRequest) {
  return { organizationId, subjectUserId: userId, clusterId };
}

async function requireRequest(tx: Tx, id: string): Promise<AccessRequest> {
  const request = await findAccessRequest(tx.db, id);
  if (!request) throw requestNotFound();
  return request;
}

function requestNotFound(): DomainError {
  return notFound('There is no such request.');
}

async function requestReply(tx: Tx, id: string) {
  return requestBody(await requireRequest(tx, id), tx.now);
}

/** The replies, with a mark on approved requests whose permissions were taken away since. */
async function requestBodies(db: Reader, requests: readonly AccessRequest[], now: number) {
  const holdings = new Map<string, Promise<Holdings>>();
  const heldBy = ({ organizationId, userId }: AccessRequest) => {
    const key = `${organizationId} ${userId}`;
    const known =
      holdings.get(key) ??
      listGrantedPermissions(db, organizationId, userId, now).then((granted) => heldUntil('member', granted));
    holdings.set(key, known);
    return known;
  };
  return Promise.all(
    requests.map(async (request) => ({
      ...requestBody(request, now),
      ...(request.state === 'approved' &&
        isTakenAway(request, await heldBy(request), now) && { removed: true }),
    })),
  );
}

function requestBody(request: AccessRequest, now: number) {
  const state = requestState(request, now);
  return {
    ...snakeCased(request, ['id', 'organizationId', 'userId', 'email', 'reason', 'createdAt']),
    permissions: [...request.permissions],
    state,
    ...present(snakeCased(request, ['clusterId', 'hours', 'expiresAt'])),
    ...present(snakeCased(request, ['decidedAt', 'decidedBy', 'decisionReason'])),
    ...(state === 'open' && { lapses_at: toTime(requestLapsesAt(request)) }),
  };
}
