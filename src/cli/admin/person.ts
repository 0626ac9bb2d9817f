import { foldEmail } from '../../domain/people/person.ts';
import { escapeControls, visibleName } from '../../domain/text.ts';
import { parseEnd, pick } from '../arguments.ts';
import { confirm, isAttended, newPassword } from '../ask.ts';
import { usage } from '../exit.ts';
import { type Api, type Business, type Reader, readPages } from '../net/api.ts';
import { listed, printer, printMessage } from '../output.ts';
import { type Noun, optional, reads, repeatable, type Verb, writes, yesFlag } from '../verb.ts';
import { completeSet } from './organization.ts';

type Person = Business['Person'];

const people = printer<Person>(
  {
    EMAIL: (row) => row.primary_email,
    NAME: (row) => visibleName(row.display_name),
    STATE: (row) => row.lifecycle_state,
    STAFF: (row) => listed(row.staff_keys),
    ID: (row) => row.id,
  },
  'There are no such people.',
);

function list(api: Reader, email?: string): Promise<Person[]> {
  return readPages(
    (after) => api.get('/operator/people', { query: { email, limit: 200, after } }),
    (page) => ({ items: page.people, next: page.next_page_token }),
  );
}

async function pathOf(api: Reader, wanted: string): Promise<{ userID: string }> {
  if (wanted.startsWith('user_')) return { userID: wanted };
  const email = foldEmail(wanted);
  const found = await list(api, email);
  const all = found.length > 0 ? found : await list(api);
  return { userID: pick(['person', 'people'], all, email, (one) => [one.primary_email, one.id]).id };
}

const identities = printer<Business['Identity']>(
  {
    ISSUER: (row) => row.issuer,
    SUBJECT: (row) => row.subject,
    SINCE: (row) => row.created_at,
  },
  'There are no identities: the next sign-in with the verified address gets the account, unless unbound.',
);

/** Prints identities; unbound ones go to stderr, because they are not valid any more. */
function printIdentities(json: Business['Identities']) {
  for (const one of json.unbound ?? []) {
    const [subject, issuer] = [escapeControls(one.subject), escapeControls(one.issuer)];
    const cure = `\`andromeda admin person rebind EMAIL --issuer ${issuer}\` lets it in again.`;
    printMessage(`${subject} at ${issuer} is unbound. ${cure}`);
  }
  return identities.many(json, json.identities);
}

/** The issuer of a person's present and former identities; undefined when there are none. Throws when there are several. */
async function onlyIssuer(api: Reader, path: { userID: string }, email: string): Promise<string | undefined> {
  const found = await api.get('/operator/people/{userID}/identities', { path });
  const [issuer, ...more] = new Set([...found.identities, ...(found.unbound ?? [])].map((one) => one.issuer));
  if (more.length === 0) return issuer;
  throw usage(
    `${email} has identities at several issuers. Say which one with --issuer: ${[issuer, ...more].join(', ')}`,
  );
}

function onlyIdentity(
  all: Business['Identities']['identities'],
  { issuer, subject }: IdentityOptions,
  email: string,
) {
  const [only, ...more] = all.filter(
    (one) => (issuer ?? one.issuer) === one.issuer && (subject ?? one.subject) === one.subject,
  );
  if (!only) throw usage(`${email} has no such identity; \`andromeda admin person identities\` lists them.`);
  if (more.length > 0)
    throw usage(`${email} has several identities. Say which one with --issuer and --subject.`);
  return { issuer: only.issuer, subject: only.subject };
}

interface IdentityOptions {
  issuer?: string;
  subject?: string;
}

const issuerFlag = optional('--issuer <url>', 'at which issuer; left out: the only one');

function changesPerson(
  usage: string,
  summary: string,
  example: string,
  change: (api: Api, path: { userID: string }, ...given: string[]) => Promise<Person>,
): Verb {
  return writes({
    usage,
    summary,
    example: `person ${example}`,
    run: async ({ api }, ...given) =>
      people.one(await change(api, await pathOf(api, given[0] ?? ''), ...given)),
  });
}

export const person: Noun = {
  name: 'person',
  summary: 'people with an account, and what they may do as staff',
  verbs: [
    reads<{ email?: string }>({
      usage: 'list',
      summary: 'everyone with an account',
      flags: [optional('--email <email>', 'only the person with this address')],
      async run({ api, options }) {
        const found = await list(api, options.email);
        return people.many({ people: found }, found);
      },
    }),
    writes<{ name?: string; staff?: string[] }>({
      usage: 'add <email>',
      summary: 'make an account for the person who signs in with this verified address',
      example: 'person add bob@physics.example --name Bob',
      flags: [
        optional('--name <name>', 'how they are called'),
        repeatable('--staff <key>', 'a staff key: staff.read, staff.audit or staff.operate'),
      ],
      async run({ api, options: { name, staff } }, email) {
        return people.one(await api.post('/operator/people', { body: { email, name, staff_keys: staff } }));
      },
    }),
    writes<{ none?: true }>({
      usage: 'staff <email> [keys...]',
      summary: "set a person's staff keys: the complete set",
      example: 'person staff bob@physics.example staff.read staff.audit',
      flags: [optional('--none', 'they are no operator any more')],
      async run({ api, options }, email = '', ...keys) {
        const path = await pathOf(api, email);
        const body = { staff_keys: completeSet('staff keys', keys, options.none) };
        return people.one(await api.put('/operator/people/{userID}/staff-keys', { path, body }));
      },
    }),
    changesPerson(
      'password <email>',
      'set a password at the built-in sign-in: asked for, or the first line of standard input',
      'password bob@physics.example',
      async (api, path, email) => {
        const body = { password: await newPassword(email) };
        return api.put('/operator/people/{userID}/password', { path, body });
      },
    ),
    writes({
      usage: 'link <email>',
      summary: 'make a link with which someone sets a password at the built-in sign-in: once, within a day',
      example: 'person link bob@physics.example',
      async run({ api }, email = '') {
        const path = await pathOf(api, email);
        const json = await api.post('/operator/people/{userID}/password-link', { path });
        const message = `Give it to ${visibleName(email)} only. It is good once, until ${json.expires_at}.`;
        return { json, text: `${json.url}\n`, message };
      },
    }),
    changesPerson(
      'reset-factor <email>',
      'take the second factor of someone who has lost app and recovery codes',
      "reset-factor bob@physics.example --reason 'lost phone, seen in person'",
      (api, path) => api.post('/operator/people/{userID}/second-factor/reset', { path }),
    ),
    reads({
      usage: 'identities <email>',
      summary: 'the identities that a person signs in with: issuer and subject',
      example: 'person identities bob@physics.example',
      async run({ api }, email = '') {
        const path = await pathOf(api, email);
        return printIdentities(await api.get('/operator/people/{userID}/identities', { path }));
      },
    }),
    writes<IdentityOptions>({
      usage: 'rebind <email>',
      summary: 'free an account from its identity, for the next sign-in with the address, or for --subject',
      example: "person rebind bob@physics.example --reason 'new sign-in'",
      flags: [issuerFlag, optional('--subject <sub>', 'bind to this identity, and to no other')],
      async run({ api, options }, email = '') {
        const path = await pathOf(api, email);
        const issuer = options.issuer ?? (await onlyIssuer(api, path, email));
        // The account is unbound already; only a new identity needs --issuer.
        if (issuer === undefined && options.subject === undefined) return printIdentities({ identities: [] });
        if (issuer === undefined) throw usage(`${email} has no identity yet; --subject needs --issuer too.`);
        const body = { issuer, subject: options.subject };
        return printIdentities(await api.put('/operator/people/{userID}/identities', { path, body }));
      },
    }),
    writes<IdentityOptions>({
      usage: 'unbind <email>',
      summary: 'take an identity from an account, for good: its address does not bind it again',
      example: "person unbind bob@physics.example --reason 'stolen sign-in'",
      flags: [issuerFlag, optional('--subject <sub>', 'which identity; left out: the only one there')],
      async run({ api, options }, email = '') {
        const path = await pathOf(api, email);
        const { identities: all } = await api.get('/operator/people/{userID}/identities', { path });
        const body = onlyIdentity(all, options, email);
        return printIdentities(await api.post('/operator/people/{userID}/identities/unbind', { path, body }));
      },
    }),
    changesPerson(
      'email <email> <new>',
      'give a person another address; identities, keys and memberships stay',
      "email bob@physics.example robert@physics.example --reason 'new name'",
      (api, path, _, email) => api.put('/operator/people/{userID}/email', { path, body: { email } }),
    ),
    writes<{ until?: string; none?: true }>({
      usage: 'exempt <email>',
      summary: 'let access last without a sign-in until a time, as for machines that work at night',
      example: "person exempt bob@physics.example --until 2w --reason 'beam time'",
      flags: [
        optional('--until <time>', 'a date, a time, or a duration such as 2w'),
        optional('--none', 'access lapses as that of everyone else again'),
      ],
      async run({ api, options: { until, none } }, email = '') {
        if ((until === undefined) === (none === undefined))
          throw usage('Give the end with --until, or --none to end it.');
        const body = { until: parseEnd('--until', until) ?? null };
        const path = await pathOf(api, email);
        return people.one(await api.put('/operator/people/{userID}/sign-in-exemption', { path, body }));
      },
    }),
    writes<{ yes?: true }>({
      usage: 'erase <email>',
      summary: 'replace what names a person who was deactivated, for good: a pseudonym stays',
      example: "person erase bob@physics.example --reason 'request of 3 May'",
      flags: [yesFlag],
      async run({ api, options }, email = '') {
        const path = await pathOf(api, email);
        if (!options.yes && isAttended()) {
          printMessage(
            'Name, address, identities and keys go, here and in the audit trail. Nothing brings them back.',
          );
          await confirm(`Erase ${visibleName(email)}?`);
        }
        const json = await api.post('/operator/people/{userID}/erase', { path });
        const message = 'The audit trail follows in the background; the log says erasure.done.';
        return { ...people.one(json), message };
      },
    }),
    changesPerson(
      'deactivate <email>',
      'take everything from a person who left: memberships, grants, keys, sign-in',
      "deactivate bob@physics.example --reason 'left the lab'",
      (api, path) => api.post('/operator/people/{userID}/deactivate', { path }),
    ),
    changesPerson(
      'reactivate <email>',
      'let a person sign in again; what was taken from them stays taken',
      'reactivate bob@physics.example',
      (api, path) => api.post('/operator/people/{userID}/reactivate', { path }),
    ),
  ],
};
