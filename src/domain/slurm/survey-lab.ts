/** The organization's part of a lab file from a survey: those who can be adopted, with their numbers and keys. */
import { type LabMember, type MemberCheck, memberCheck } from '../clusters/lab-member.ts';
import { foldEmail, isEmail } from '../people/person.ts';
import { cutText, plainLine, visibleLine } from '../text.ts';
import type { ClusterSurvey, SurveyedPerson } from './survey-person.ts';

export interface SurveyAnswer extends ClusterSurvey {
  cluster: string;
  organization: { slug: string; name: string };
}

/** A row of the site's list of people, by username. */
export interface KnownPerson {
  email: string;
  name: string;
}

export interface Addresses {
  known: ReadonlyMap<string, KnownPerson>;
  /** `{username}@lab.example` for those who are not in the list. */
  pattern?: string | undefined;
}

/** Of a display name, in the lab file's schema. */
const longestName = 200;

/** The lab, and for its reader a line for each person and key that a person must decide about. */
export function labOfSurvey({ cluster, organization, people }: SurveyAnswer, { known, pattern }: Addresses) {
  const users: { email: string; name: string }[] = [];
  const members: LabMember[] = [];
  const open: string[] = [];
  const taken = new Set<string>();
  const check = memberCheck(organization.slug);
  const privileged = people.filter(({ verdict }) => verdict === 'privileged');
  for (const person of people) {
    const { username, uid, gid, keys, verdict, reasons } = person;
    const listed = known.get(username);
    const email = listed?.email ?? pattern?.replaceAll('{username}', username.toLowerCase()) ?? '';
    if (verdict === 'not_person') continue;
    const member: LabMember = {
      ...{ email, role: 'member', username, uid, gid },
      permissions: ['clusters.read', 'clusters.ssh'],
      ...(keys.length > 0 && { keys: keys.map(({ line }) => plainLine(line)) }),
    };
    const fingerprints = keys.map(({ fingerprint }) => fingerprint);
    const obstacle =
      obstacleOf(person) ?? obstacleOfAddress(email, taken) ?? obstacleOfMember(member, fingerprints, check);
    const numbers = `${username} (uid ${uid}, gid ${gid})`;
    if (obstacle !== undefined) {
      open.push(`${numbers} is left out: ${obstacle}`);
      continue;
    }
    taken.add(foldEmail(email));
    if (verdict === 'differs') open.push(`${numbers} stays as it is where it differs: ${reasons.join('; ')}`);
    const name = cutText(plainLine(listed?.name || person.name), longestName);
    if (name !== '') users.push({ email, name });
    members.push(member);
  }
  if (privileged.length > 0) {
    const names = privileged.map(({ username }) => username).join(', ');
    open.push(`slurm of ${cluster} needs adoptPrivileged: [${names}] for those who may become root`);
  }
  return {
    lab: { users, organizations: [{ ...organization, members }] },
    open: [...open, ...unreadLines(people), ...keyLines(people), ...unmatchedLines(known, people)],
  };
}

/** The comment at the head of a lab file: how to go on, and what is left to decide. */
export function headOfLab({ cluster }: SurveyAnswer, open: readonly string[], file: string): string {
  const first = `From a survey of ${cluster}. To see what it does: andromeda admin plan -f ${file}`;
  return [first, ...open].map((line) => `# ${visibleLine(line)}\n`).join('');
}

function obstacleOf({ verdict, expired, password, reasons }: SurveyedPerson) {
  if (verdict === 'name') return `the name cannot be one here; ${reasons[0]}`;
  if (expired) return 'it has expired';
  if (password === 'locked') return 'its password is locked, as of a person who left';
  return undefined;
}

function obstacleOfAddress(email: string, taken: ReadonlySet<string>): string | undefined {
  if (email === '') return 'no address is known';
  if (!isEmail(email)) return `${email} is no address`;
  return taken.has(foldEmail(email)) ? `${email} is the address of another` : undefined;
}

/** What `plan` would refuse, and the whole file with it. */
function obstacleOfMember(
  member: LabMember,
  fingerprints: readonly string[],
  check: MemberCheck,
): string | undefined {
  try {
    check(member, fingerprints, []);
    return undefined;
  } catch (error) {
    return (error as Error).message.replace(/\.$/, '');
  }
}

function unreadLines(people: readonly SurveyedPerson[]): string[] {
  const waiting = people.filter(({ verdict, unread }) => verdict !== 'not_person' && unread.length > 0);
  const hosts = new Set(waiting.flatMap(({ unread }) => unread));
  return [...hosts].map((host) => {
    const names = waiting.filter(({ unread }) => unread.includes(host)).map(({ username }) => username);
    return `the keys on ${host} are not known of ${names.join(', ')}`;
  });
}

/** Of the list of people, those whom no account belongs to. */
function unmatchedLines(known: Addresses['known'], people: readonly SurveyedPerson[]): string[] {
  const usernames = new Set(people.map(({ username }) => username));
  return [...known.keys()]
    .filter((login) => !usernames.has(login))
    .map((login) => {
      const other = people.find(({ username }) => username.toLowerCase() === login.toLowerCase());
      const hint = other ? `; there is ${other.username}` : '';
      return `${login} of the list of people is no account of this survey${hint}`;
    });
}

function keyLines(people: readonly SurveyedPerson[]): string[] {
  return people.flatMap(({ username, others }) =>
    others.map(({ fingerprint, reason }) => `the key ${fingerprint} of ${username} ${reason}`),
  );
}

/**
 * Reads a list of people with the columns login, email and name. Throws what is wrong with the first wrong line. A cell may be in
 * quotes, with blanks around them.
 */
export function readPeople(text: string): Map<string, KnownPerson> {
  const people = new Map<string, KnownPerson>();
  const lines = text.replace(/^\ufeff/, '').split(/\r?\n/);
  const [separator = ','] = /[,;\t]/.exec(lines[0] ?? '') ?? [];
  const cell = ` *"(?:[^"]|"")*" *|(?! *")[^${separator}]*`;
  const cells = new RegExp(`(?:^|${separator})(${cell})`, 'g');
  const whole = new RegExp(`^(?:${cell})(?:${separator}(?:${cell}))*$`);
  for (const [index, line] of lines.entries()) {
    const [login = '', email = '', name = ''] = [...line.matchAll(cells)].map(([, text = '']) =>
      text
        .trim()
        .replace(/^"(.*)"$/, '$1')
        .replaceAll('""', '"')
        .trim(),
    );
    const isHeading = index === 0 && !email.includes('@');
    if (line.trim() === '' || isHeading) continue;
    if (!whole.test(line)) throw new Error(`line ${index + 1} has a quote without its other one`);
    if (login === '' || !isEmail(email)) throw new Error(`line ${index + 1} is not login,email,name`);
    if (people.has(login)) throw new Error(`line ${index + 1} has the login ${login} again`);
    people.set(login, { email, name });
  }
  return people;
}
