/** The signed-in person, and their login preferences on clusters. */
import { lapseNotices } from '../../domain/access/lapse.ts';
import { endNotices } from '../../domain/access/permission.ts';
import { unauthorized } from '../../domain/error.ts';
import type { Membership } from '../../domain/organizations/membership.ts';
import { type Person, parseLoginShell } from '../../domain/people/person.ts';
import { present } from '../../domain/present.ts';
import { cached } from '../../store/engine/cache.ts';
import type { Store } from '../../store/engine/index.ts';
import { findMembership, listMembershipsOf } from '../../store/organizations/memberships.ts';
import { findOrganization } from '../../store/organizations/organizations.ts';
import { findLeastSignInHours, findPerson, updateLoginShell } from '../../store/people/people.ts';
import { listActiveKeys } from '../../store/people/ssh-keys.ts';
import { type Operation, writes } from './operation.ts';

export const getMe: Operation<'getMe'> = async ({ store }, { caller, now }) => {
  const known = await cached(store, `me/${caller.userId}`, () => accountOf(store, caller.userId));
  const { person, memberships, reply } = known;
  const notices = [
    ...(await lapseNoticesOf(store, person, known.signInHours)),
    ...(await endNoticesOf(store, memberships, now)),
  ];
  return notices.length === 0 ? reply : { ...reply, notices };
};

/** The parts that only writes change, and so can be cached; the notices depend on the time as well. */
async function accountOf({ read }: Store, userId: string) {
  const [person, memberships, signInHours] = await Promise.all([
    findPerson(read, userId),
    listMembershipsOf(read, userId),
    findLeastSignInHours(read, userId),
  ]);
  if (!person) throw unauthorized('There is no account for this sign-in.');
  const [only, another] = memberships;
  const reply = Object.freeze({
    user: {
      id: person.id,
      primary_email: person.email,
      display_name: person.displayName,
      ...present({ preferred_username: person.preferredUsername }),
      login_shell: person.loginShell,
      lifecycle_state: 'active' as const,
      created_at: person.createdAt,
      updated_at: person.updatedAt,
    },
    memberships: memberships.map(membershipBody),
    ...(only && !another ? { default_org_id: only.organizationId } : {}),
    staff_keys: person.staffKeys,
  });
  return { person, memberships, signInHours, reply };
}

/** Sets the login shell on every cluster. Sending the present one again starts no change there. */
export const setLoginPreferences = writes('setLoginPreferences', (_, { body, caller: { userId } }) => {
  const shell = parseLoginShell(body.shell);
  return {
    meaning: [shell],
    about: { target: userId, subjectUserId: userId, details: shell },
    async apply(tx, commandId) {
      await updateLoginShell(tx, userId, shell);
      return { result: { shell, command_id: commandId } };
    },
  };
});

async function lapseNoticesOf(
  { read, lapses }: Store,
  person: Person,
  signInHours: number | null,
): Promise<string[]> {
  const { policy } = lapses;
  const keys = policy.keyMaxDays === undefined ? [] : await listActiveKeys(read, person.id);
  const own = {
    signIn: lapses.signInOf({
      signedInAt: person.signedInAt ?? person.createdAt,
      exemptUntil: person.signInExemptUntil,
      hours: signInHours,
    }),
    keys: keys.map(({ fingerprint, createdAt }) => ({ fingerprint, registeredAt: Date.parse(createdAt) })),
  };
  return lapseNotices(own, policy, lapses.now());
}

async function endNoticesOf(
  { read }: Store,
  memberships: Awaited<ReturnType<typeof listMembershipsOf>>,
  now: number,
): Promise<string[]> {
  const notices: string[] = [];
  for (const {
    organizationId,
    userId,
    role,
    updatedAt: since,
    hasEnds,
    reviewFrom: reviewed,
  } of memberships) {
    if (role !== 'member' || !hasEnds) continue;
    const granted = (await findMembership(read, organizationId, userId, now))?.granted ?? [];
    if (granted.every(({ expiresAt }) => expiresAt === null)) continue;
    const name = (await findOrganization(read, organizationId))?.displayName ?? organizationId;
    notices.push(...endNotices({ organization: name, since, granted, reviewed }, now));
  }
  return notices;
}

/** A membership as the API shows it. Written out for speed, since lists have thousands. */
export function membershipBody(membership: Membership) {
  const { username } = membership;
  return {
    org_id: membership.organizationId,
    user_id: membership.userId,
    email: membership.email,
    role: membership.role,
    lifecycle_state: membership.lifecycleState,
    created_at: membership.createdAt,
    updated_at: membership.updatedAt,
    organization_username: {
      id: username.id,
      username: username.username,
      source: username.source,
      lifecycle_state: username.lifecycleState,
      created_at: username.createdAt,
      org_id: membership.organizationId,
      user_id: membership.userId,
      ...(username.frozenAt === null ? {} : { frozen_at: username.frozenAt }),
    },
  };
}
