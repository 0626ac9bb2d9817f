/** `andromeda admin groups`: groups at the issuer, and what rules for them would change. */
import { visibleLine } from '../../domain/text.ts';
import { usage } from '../exit.ts';
import { readYaml } from '../files.ts';
import type { Business } from '../net/api.ts';
import { isObject } from '../net/request.ts';
import { type Answer, formatTable, listed, printer } from '../output.ts';
import { describePlan } from '../plan-text.ts';
import { type Noun, optional, reads, required } from '../verb.ts';

type Rule = Business['GroupRule'];

const groupTable = printer<Business['Groups']['groups'][number]>(
  {
    GROUP: (row) => row.group,
    PEOPLE: (row) => row.people,
    // `physics:member+clusters.ssh`
    GIVES: (row) =>
      listed(
        row.rules.map((one) =>
          [`${one.organization}:${one.role ?? 'member'}`, ...(one.permissions ?? [])].join('+'),
        ),
      ),
  },
  'No groups are known.',
);

/** The rules of a file: its `rules`, or those of a configuration (`identity.groups.rules`). What else is in it stays here. */
async function readRules(file: string): Promise<Rule[]> {
  const given = await readYaml(file);
  const { identity } = given;
  const groups = isObject(identity) ? identity['groups'] : undefined;
  const rules = isObject(groups) ? (groups['rules'] ?? []) : given['rules'];
  if (Array.isArray(rules)) return rules as Rule[];
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
