/** What operators must mend of what the identity provider says. */
import type { Problem } from '../installation-state.ts';
import { reasonOfGroups } from '../organizations/group-rules.ts';

/** People whose groups could not be taken over, and last owners whom rules would take away. Times in RFC 3339. */
export function problemsOfGroups(
  faults: { people: number; since: string; fault: string; email: string } | undefined,
  keptOwners: readonly { slug: string; email: string; groups: readonly string[]; since: string }[],
): Problem[] {
  const ofOwners = keptOwners.map(({ slug, email, groups, since }): Problem => {
    return {
      area: 'identity',
      about: slug,
      urgency: 'now',
      since,
      message: `${email} is its last owner by ${reasonOfGroups(groups)}, which no longer gives that, and stays owner.`,
      action: 'Make someone else an owner, by hand or by a rule; it then ends at their next sign-in.',
    };
  });
  if (!faults) return ofOwners;
  const { people, since, fault, email } = faults;
  const whose = people === 1 ? `of ${email}` : `of ${people} people, ${email} among them,`;
  return [
    ...ofOwners,
    {
      area: 'identity',
      about: 'groups at the issuer',
      urgency: 'now',
      since,
      message: `What the issuer says of the groups ${whose} is not taken over, and what they have stays. ${fault}`,
      action: 'Mend it at the issuer (docs/identity-provider.md). It is taken over at the next sign-in.',
    },
  ];
}
