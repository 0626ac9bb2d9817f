/** `identity.groups`: the claim with people's groups at the issuer, and the rules that give access by them. */
import { permissionCatalog } from '../../domain/access/permission.ts';
import {
  type GroupSettings,
  longestGroup,
  mostRules,
  refuseUnknownSlugs,
  ruleOf,
} from '../../domain/organizations/group-rules.ts';
import { invalid } from './named-files.ts';
import { list, oneOf, section, text, type Value } from './schema.ts';

const ruleSchema = section(
  {
    group: { ...text, maxLength: longestGroup },
    organization: { ...text, maxLength: 100 },
    role: oneOf('member', 'admin', 'owner'),
    permissions: list(oneOf(...permissionCatalog.map(({ key }) => key)), { maxItems: 100 }),
  },
  ['group', 'organization'],
);

export const groupsSchema = section(
  {
    claim: { ...text, maxLength: 200 },
    rules: list(ruleSchema, { maxItems: mostRules }),
  },
  ['claim'],
);

const at = 'identity.groups.rules';

export function readGroupSettings(
  { claim, rules = [] }: Value<typeof groupsSchema>,
  issuer: string | undefined,
): GroupSettings {
  if (issuer === undefined)
    throw invalid(
      'identity.groups: the built-in issuer knows no groups. Give identity.issuer, or leave this out.',
    );
  return { source: { issuer, claim }, rules: rules.map((rule, index) => ruleOf(rule, `${at}[${index}]`)) };
}

/** Throws `invalid_request` for a rule whose organization does not exist. */
export function checkOrganizations({ rules }: GroupSettings, slugs: readonly string[]): void {
  refuseUnknownSlugs(rules, slugs, at);
}
