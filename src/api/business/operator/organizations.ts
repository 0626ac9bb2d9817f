/** Organizations, as operators see and make them. */
import { foldEmail } from '../../../domain/people/person.ts';
import { present } from '../../../domain/present.ts';
import { runCommand } from '../../../store/audit/commands.ts';
import type { Reader } from '../../../store/engine/index.ts';
import { createMembership } from '../../../store/organizations/membership-changes.ts';
import {
  createOrganization,
  listOrganizations,
  type OrganizationSummary,
  updateAutoJoinDomains,
  updateOrganizationName,
  updateSignInHours,
} from '../../../store/organizations/organizations.ts';
import { findOrCreatePerson } from '../../../store/people/people.ts';
import type { Operation } from '../operation.ts';
import { organizationBody, requireOrganization } from '../organizations.ts';
import { requireOperator, staffReads } from './about.ts';

export const operatorListOrganizations = staffReads<'operatorListOrganizations'>(async ({ store }) => {
  return { organizations: (await listOrganizations(store.read)).map(summaryBody) };
});

export const operatorCreateOrganization: Operation<'operatorCreateOrganization'> = (deps, request) => {
  const { body, caller } = request;
  const { slug, display_name, owner_username } = body;
  const domains = body.auto_join_domains ?? [];
  const email = foldEmail(body.owner_email);
  return runCommand(deps.store, request, {
    operation: 'operatorCreateOrganization',
    meaning: [slug, display_name, email, owner_username ?? '', [...domains].sort()],
    about: { target: slug, details: `owner ${email}` },
    authorize: requireOperator,
    async apply(tx) {
      const made = { slug, displayName: display_name, autoJoinDomains: domains, createdBy: caller.userId };
      const organizationId = await createOrganization(tx, made);
      const { userId } = await findOrCreatePerson(tx, { email });
      await createMembership(tx, { organizationId, userId, email, role: 'owner', username: owner_username });
      return {
        result: await organizationReply(tx.db, organizationId),
        about: { organizationId, subjectUserId: userId },
      };
    },
  });
};

/** Renames an organization, or sets the domains that join it and how long a sign-in counts; what is left out stays. */
export const operatorUpdateOrganization: Operation<'operatorUpdateOrganization'> = (deps, request) => {
  const organizationId = request.path.orgID;
  const { display_name, auto_join_domains: domains, max_hours_without_sign_in: hours } = request.body;
  const details = [
    display_name === undefined ? '' : `name → ${display_name}`,
    domains === undefined ? '' : `domains → ${domains.join(', ') || 'none'}`,
    hours === undefined ? '' : `hours without a sign-in → ${hours ?? 'as the installation'}`,
  ];
  return runCommand(deps.store, request, {
    operation: 'operatorUpdateOrganization',
    meaning: [
      ...[organizationId, display_name ?? null, domains ? [...domains].sort() : null],
      ...(hours === undefined ? [] : [hours]),
    ],
    about: {
      target: organizationId,
      organizationId,
      details: details.filter(Boolean).join('; '),
    },
    authorize: requireOperator,
    async apply(tx) {
      await requireOrganization(tx.db, organizationId);
      if (display_name !== undefined) {
        await updateOrganizationName(tx, { organizationId, displayName: display_name });
      }
      if (domains) await updateAutoJoinDomains(tx, { organizationId, domains });
      if (hours !== undefined) await updateSignInHours(tx, { organizationId, hours });
      return { result: await organizationReply(tx.db, organizationId) };
    },
  });
};

async function organizationReply(db: Reader, organizationId: string) {
  const [summary] = await listOrganizations(db, organizationId);
  if (!summary) throw new Error(`organization ${organizationId} is gone`);
  return summaryBody(summary);
}

function summaryBody({ organization, domains, members, clusters }: OrganizationSummary) {
  return {
    organization: organizationBody(organization),
    auto_join_domains: domains,
    ...present({ max_hours_without_sign_in: organization.maxHoursWithoutSignIn }),
    member_count: members,
    cluster_count: clusters,
  };
}
