/** `andromeda admin organization`, `purchase` and `groups`. */
import { visibleLine, visibleName } from '../../domain/text.ts';
import { pick } from '../arguments.ts';
import { usage } from '../exit.ts';
import { readYaml } from '../files.ts';
import type { Business, Reader } from '../net/api.ts';
import { isObject } from '../net/request.ts';
import { type Answer, formatTable, listed, printer } from '../output.ts';
import { describePlan } from '../plan-text.ts';
import { changesOne, lists, type Noun, optional, reads, repeatable, required, writes } from '../verb.ts';

const purchases = printer<Business['StoragePurchase']>(
  {
    STATE: (row) => row.state,
    TYPE: (row) => row.storage_type,
    BYTES: (row) => row.bytes,
    CLUSTER: (row) => row.target_cluster_id,
    ORGANIZATION: (row) => row.organization_id,
    CREATED: (row) => row.created_at,
    ID: (row) => row.id,
  },
  'There are no purchases.',
);

const decides = (to: 'accept' | 'decline', summary: string) =>
  changesOne('purchase', to, summary, purchases, (api, purchaseID) =>
    api.post(`/operator/purchases/{purchaseID}/${to}`, { path: { purchaseID } }),
  );

export const purchase: Noun = {
  name: 'purchase',
  summary: 'storage that organizations want to buy',
  verbs: [
    lists('every storage purchase, decided or not', purchases, 'purchases', (api) =>
      api.get('/operator/purchases'),
    ),
    decides('accept', 'accept a storage purchase: it counts from now on'),
    decides('decline', 'decline a storage purchase'),
  ],
};

const organizations = printer<Business['OperatorOrganization']>(
  {
    SLUG: ({ organization }) => organization.slug,
    NAME: ({ organization }) => visibleName(organization.display_name),
    DOMAINS: ({ auto_join_domains: domains }) => listed(domains),
    MEMBERS: (row) => row.member_count,
    CLUSTERS: (row) => row.cluster_count,
    ID: ({ organization }) => organization.id,
  },
  'There are no organizations.',
);

async function pathOf(api: Reader, slug: string): Promise<{ orgID: string }> {
  const { organizations } = await api.get('/operator/organizations');
  const all = organizations.map(({ organization }) => organization);
  return { orgID: pick(['organization', 'organizations'], all, slug, ({ slug, id }) => [slug, id]).id };
}

/** Checks a complete set from arguments: an empty one requires --none. */
export function completeSet(what: string, values: string[], none: boolean | undefined): string[] {
  if (none ? values.length > 0 : values.length === 0)
    throw usage(`Give the ${what}, all of them, or --none for none.`);
  return values;
}

export const organization: Noun = {
  name: 'organization',
  summary: 'organizations, and the domains that join them',
  verbs: [
    lists('every organization', organizations, 'organizations', (api) => api.get('/operator/organizations')),
    writes<{ name?: string; owner: string; ownerUsername?: string; domain?: string[] }>({
      usage: 'add <slug>',
      summary: 'make an organization with its first owner',
      example: "organization add physics --name 'Physics' --owner ada@physics.example",
      flags: [
        optional('--name <name>', 'its name (the slug)'),
        required('--owner <email>', 'its first owner'),
        optional('--owner-username <username>', "the owner's login name (made from the address)"),
        repeatable('--domain <domain>', 'people who sign in with such an address join'),
      ],
      async run({ api, options: { name, owner, ownerUsername, domain } }, slug = '') {
        const body = {
          slug,
          display_name: name ?? slug,
          owner_email: owner,
          owner_username: ownerUsername,
          auto_join_domains: domain,
        };
        return organizations.one(await api.post('/operator/organizations', { body }));
      },
    }),
    writes({
      usage: 'rename <slug> <name>',
      summary: 'give an organization another name; the slug stays',
      example: "organization rename physics 'Department of Physics'",
      async run({ api }, slug = '', name) {
        const path = await pathOf(api, slug);
        const body = { display_name: name };
        return organizations.one(await api.put('/operator/organizations/{orgID}', { path, body }));
      },
    }),
    writes<{ none?: true }>({
      usage: 'domains <slug> [domains...]',
      summary: 'set the domains that join an organization: the complete set',
      example: 'organization domains physics physics.example lab.example',
      flags: [optional('--none', 'no one joins by address')],
      async run({ api, options }, slug = '', ...domains) {
        const body = { auto_join_domains: completeSet('domains', domains, options.none) };
        const path = await pathOf(api, slug);
        return organizations.one(await api.put('/operator/organizations/{orgID}', { path, body }));
      },
    }),
    writes<{ none?: true }>({
      usage: 'sign-in <slug> [hours]',
      summary:
        'how many hours access of the members lasts without a sign-in, where that is less than for others',
      example: 'organization sign-in physics 8',
      flags: [optional('--none', 'as long as the installation says')],
      async run({ api, options }, slug = '', hours = '') {
        const wanted = completeSet('hours', hours === '' ? [] : [hours], options.none)[0];
        if (wanted !== undefined && !/^[1-9]\d{0,5}$/.test(wanted))
          throw usage(`${wanted} is no number of hours.`);
        const body = { max_hours_without_sign_in: wanted === undefined ? null : Number(wanted) };
        const path = await pathOf(api, slug);
        const json = await api.put('/operator/organizations/{orgID}', { path, body });
        const message = `A sign-in counts for ${wanted === undefined ? 'as long as the installation says' : `${wanted} hours`} there.`;
        return { ...organizations.one(json), message };
      },
    }),
    writes({
      usage: 'retire <slug>',
      summary: 'end an organization whose clusters are released; its slug is never used again',
      example: 'organization retire physics',
      async run({ api }, slug = '') {
        const path = await pathOf(api, slug);
        const json = await api.post('/organizations/{orgID}/retire', { path });
        return { json, text: '', message: `${slug} is retired.` };
      },
    }),
  ],
};

const groupTable = printer<Business['Groups']['groups'][number]>(
  {
    GROUP: (row) => row.group,
    PEOPLE: (row) => row.people,
    // For example `physics:member+clusters.ssh`.
    GIVES: (row) =>
      listed(
        row.rules.map((one) =>
          [`${one.organization}:${one.role ?? 'member'}`, ...(one.permissions ?? [])].join('+'),
        ),
      ),
  },
  'No groups are known.',
);

/** Reads `rules`, or a configuration's `identity.groups.rules`, from a file. The rest of the file is not sent. */
async function readRules(file: string): Promise<Business['GroupRule'][]> {
  const given = await readYaml(file);
  const { identity } = given;
  const groups = isObject(identity) ? identity['groups'] : undefined;
  const rules = isObject(groups) ? (groups['rules'] ?? []) : given['rules'];
  if (Array.isArray(rules)) return rules;
  throw usage(`${file} has no list of rules: neither \`rules\` nor \`identity.groups.rules\`.`);
}

function describeGroupPlan({ people, changes, kept_owners: kept, restarts }: Business['GroupPlan']): string {
  const rows = changes.map(({ organization, what, gain, lose }) => [organization, what, gain, lose]);
  const table = rows.length === 0 ? [] : [formatTable(['ORGANIZATION', 'WHAT', 'GAIN', 'LOSE'], rows)];
  const owners = kept.map((email) => `${visibleLine(email)} stays owner: there is no other.`);
  const unknown =
    people.unknown === 0
      ? ''
      : ` Of ${people.unknown} no groups are known: they count from their next sign-in.`;
  const known = `Groups of ${people.known} ${people.known === 1 ? 'person is' : 'people are'} known.${unknown}`;
  const effects = restarts.length === 0 ? [] : [describePlan({ changes: [], restarts }, '')];
  const nothing = changes.length + kept.length === 0 ? ['Nothing would change.'] : [];
  return [...table, ...owners, ...nothing, ...effects, known].join('\n\n');
}

export const groups: Noun = {
  name: 'groups',
  summary: 'groups at the issuer, and what rules for them give',
  verbs: [
    reads<{ email?: string }>({
      usage: 'list',
      summary: 'every group that people were last said to be in',
      example: 'groups list --email ada@physics.example',
      flags: [optional('--email <email>', 'only the groups of this person')],
      async run({ api, options: { email } }): Promise<Answer> {
        const json = await api.get('/operator/groups', { query: { email } });
        return groupTable.many(json, json.groups);
      },
    }),
    reads<{ file: string }>({
      usage: 'plan',
      summary: 'show what rules would change, restart and end, in the place of those in force',
      example: 'groups plan -f andromeda.yaml',
      flags: [required('-f, --file <file>', 'a file with `rules`, or a configuration; - for standard input')],
      async run({ api, options: { file } }): Promise<Answer> {
        const body = { rules: await readRules(file) };
        const json = await api.ask('/operator/groups/plan', { body, about: file });
        return { json, text: describeGroupPlan(json) };
      },
    }),
  ],
};
