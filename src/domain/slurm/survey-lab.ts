/** The organization's part of a lab file from a survey: those who can be adopted, with their numbers and keys. */
import { foldEmail, isEmail } from '../people/person.ts';
import { visibleLine } from '../text.ts';
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

/** The lab, and for its reader a line for each person and key that a person must decide about. */
export function labOfSurvey({ cluster, organization, people }: SurveyAnswer, { known, pattern }: Addresses) {
  const users: { email: string; name: string }[] = [];
  const members: object[] = [];
  const open: string[] = [];
  const taken = new Set<string>();
  const privileged = people.filter(({ verdict }) => verdict === 'privileged');
  for (const person of people) {
    const { username, uid, gid, keys, verdict, reasons } = person;
    const listed = known.get(username);
    const email = listed?.email ?? pattern?.replaceAll('{username}', username.toLowerCase()) ?? '';
    const obstacle = obstacleOf(person) ?? obstacleOfAddress(email, taken);
    if (verdict === 'not_person') continue;
    const numbers = `${username} (uid ${uid}, gid ${gid})`;
    if (obstacle !== undefined) {
      open.push(`${numbers} is left out: ${obstacle}`);
      continue;
    }
    taken.add(foldEmail(email));
    if (verdict === 'differs') open.push(`${numbers} stays as it is where it differs: ${reasons.join('; ')}`);
    const name = listed?.name || person.name;
    if (name !== '') users.push({ email, name });
    members.push({
      ...{ email, role: 'member', username, uid, gid },
      permissions: ['clusters.read', 'clusters.ssh'],
      ...(keys.length > 0 && { keys: keys.map(({ line }) => line) }),
    });
  }
  if (privileged.length > 0) {
    const names = privileged.map(({ username }) => username).join(', ');
    open.push(`slurm of ${cluster} needs adoptPrivileged: [${names}] for those who may become root`);
  }
  return {
    lab: { users, organizations: [{ ...organization, members }] },
    open: [...open, ...keyLines(people)],
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

function keyLines(people: readonly SurveyedPerson[]): string[] {
  return people.flatMap(({ username, others }) =>
    others.map(({ fingerprint, reason }) => `the key ${fingerprint} of ${username} ${reason}`),
  );
}

/** Reads a list of people with the columns login, email and name. Throws the number of the first wrong line. */
export function readPeople(text: string): Map<string, KnownPerson> {
  const people = new Map<string, KnownPerson>();
  const lines = text.replace(/^\ufeff/, '').split(/\r?\n/);
  const [separator = ','] = /[,;\t]/.exec(lines[0] ?? '') ?? [];
  const cells = new RegExp(`(?:^|${separator})("(?:[^"]|"")*"|[^${separator}]*)`, 'g');
  for (const [index, line] of lines.entries()) {
    const [login = '', email = '', name = ''] = [...line.matchAll(cells)].map(([, cell = '']) =>
      cell
        .replace(/^"(.*)"$/, '$1')
        .replaceAll('""', '"')
        .trim(),
    );
    const isHeading = index === 0 && !email.includes('@');
    if (line.trim() === '' || isHeading) continue;
    if (login === '' || !isEmail(email)) throw new Error(`line ${index + 1} is not login,email,name`);
    people.set(login, { email, name });
  }
  return people;
}
