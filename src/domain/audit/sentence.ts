/**
 * An entry of the audit trail as a sentence: who did what to whom on which cluster, and why. The console and the command line
 * show the same one.
 */
import { permissionLabels } from '../access/permission.ts';
import { phrases } from './phrases.ts';

/** An entry as the API shows it, as far as a sentence needs it. */
export interface NamedEntry {
  operation: string;
  target: string;
  reason: string;
  /** `done`, or `refused: ` and the error code. */
  result: string;
  details: string;
  actor_user_id: string;
  actor_email: string;
  actor_name?: string;
  subject_user_id?: string;
  subject_email?: string;
  subject_name?: string;
  organization_id?: string;
  organization_name?: string;
  cluster_id?: string;
  cluster_name?: string;
}

/** A piece of a sentence; `of` is what it names. */
interface SentencePart {
  text: string;
  of?: 'actor' | 'subject' | 'cluster';
}

/** Whether the operation of an entry was refused. */
function isRefused({ result }: Pick<NamedEntry, 'result'>): boolean {
  return result !== 'done';
}

/** An entry as a sentence, in parts. `refused` is why it was not done. */
export function auditSentence(entry: NamedEntry): {
  parts: SentencePart[];
  reason: string;
  refused?: string;
} {
  const parts: SentencePart[] = [{ text: entry.actor_name ?? entry.actor_email, of: 'actor' }];
  const values = valuesOf(entry);
  const { verbs, rest } = phraseOf(entry.operation, changePhrase(entry, values));
  const verb = verbs[isRefused(entry) ? 1 : 0];
  parts.push({
    text: verb.startsWith('’') ? `${verb} ` : isRefused(entry) ? ` tried to ${verb} ` : ` ${verb} `,
  });
  parts.push(...filled(rest, values));
  if (!isRefused(entry)) return { parts, reason: entry.reason };
  // The gateway has no reason of the person's, and says why in its place.
  const isOfGateway = entry.operation === 'ssh.login.refused';
  const code = entry.result.replace(/^refused(: )?/, '');
  return isOfGateway
    ? { parts, reason: '', refused: entry.reason }
    : { parts, reason: entry.reason, refused: entry.details || code };
}

/** The whole sentence as a text. */
export function sentenceText(entry: NamedEntry): string {
  const { parts, reason, refused } = auditSentence(entry);
  const text = parts.map(({ text }) => text).join('');
  const why = reason === '' ? text : `${text}: ${reason}`;
  return refused === undefined ? why : `${why} – refused: ${refused}`;
}

/** What an operation does, to choose it from a list: “Give someone permissions”. */
export function actionLabel(operation: string): string {
  const { verbs, rest } = phraseOf(operation);
  const text = `${verbs[1]} ${filled(rest, {})
    .map((part) => part.text)
    .join('')}`.replace(/^’s /, '');
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

/** Every operation that has a sentence. */
export function auditOperations(): string[] {
  return Object.keys(phrases);
}

/** A change of permissions by what it gave and took; undefined for everything else. */
function changePhrase({ operation }: NamedEntry, { given, taken }: Values): string | undefined {
  if (!given && !taken) return undefined;
  const where =
    operation === 'approveAccessRequest' ? '[ on {cluster}], as requested' : '[ in {organization}]';
  if (!taken) return `gave|give {subject} {given}${where}`;
  return given
    ? `gave|give {subject} {given} and took {taken}${where}`
    : `took|take {taken} from {subject}${where}`;
}

/** The verb as what was done and as what was tried, and what follows it. Operations of other versions have one as well. */
function phraseOf(operation: string, phrase = phrases[operation]): { verbs: [string, string]; rest: string } {
  const [, done = '', tried = '', rest = ''] =
    /^(\S+)\|(\S+) (.*)$/.exec(phrase ?? `did|do ${operation}[ on {target}]`) ?? [];
  return { verbs: [done, tried], rest };
}

type Values = Partial<Record<string, SentencePart>>;

/** What a placeholder stands for where the entry does not say. */
const generic: Readonly<Record<string, string>> = {
  subject: 'a person',
  organization: 'an organization',
  cluster: 'a cluster',
  relation: 'Kubernetes access',
};

/** Fills a phrase in; what is in brackets is left out where one of its placeholders has no value. */
function filled(phrase: string, values: Values): SentencePart[] {
  const isKnown = (text: string) => [...text.matchAll(/\{(\w+)\}/g)].every(([, name = '']) => values[name]);
  const text = phrase.replace(/\[([^\]]*)\]/g, (_, part: string) => (isKnown(part) ? part : ''));
  return text
    .split(/(\{\w+\})/)
    .filter(Boolean)
    .map((part) => {
      const name = /^\{(\w+)\}$/.exec(part)?.[1];
      return name === undefined ? { text: part } : (values[name] ?? { text: generic[name] ?? '…' });
    });
}

function valuesOf(entry: NamedEntry): Values {
  const { target, organization_name, cluster_name } = entry;
  const values: Values = { subject: subjectOf(entry) };
  const put = (name: string, text: string | undefined) => {
    if (text) values[name] = { text };
  };
  put('target', target);
  put('organization', organization_name);
  put('name', cluster_name ?? organization_name ?? target);
  if (cluster_name !== undefined) values['cluster'] = { text: cluster_name, of: 'cluster' };
  if (isRefused(entry)) return values;
  const details = withLabels(entry.details);
  put('details', details);
  put('after', /→ (.*)$/.exec(details)?.[1]);
  put('role', /^role (owner|admin)\b/.exec(details)?.[1]);
  put('relation', /^(\S+)(?: as (\S+))? (?:to|of) /.exec(details)?.[1]);
  const change = changeOf(entry.details);
  put('given', change?.given);
  put('taken', change?.taken);
  return values;
}

/** Whom it was done to: by name, by what the request called them, or as the one who did it. */
function subjectOf({
  actor_user_id,
  subject_user_id,
  subject_name,
  subject_email,
  target,
}: NamedEntry): SentencePart {
  if (subject_user_id === actor_user_id) return { text: 'themselves', of: 'subject' };
  const known = subject_name ?? subject_email;
  if (known !== undefined) return { text: known, of: 'subject' };
  const named = target.slice(target.lastIndexOf('/') + 1);
  return { text: named.includes('@') ? named : 'a person' };
}

const keys = Object.keys(permissionLabels).toSorted((one, other) => other.length - one.length);
const anyKey = new RegExp(
  `(?<![\\w.])(${keys.map((key) => key.replaceAll('.', '\\.')).join('|')})(?![\\w.])`,
  'g',
);

/** Keys of permissions as people say them. */
function withLabels(text: string): string {
  return text.replace(anyKey, (key) => permissionLabels[key as keyof typeof permissionLabels]);
}

/** What a change of permissions, written as `permissions A → B`, gave and took. */
function changeOf(details: string): { given: string; taken: string } | undefined {
  const [, before, after] = /^permissions (.*) → (.*)$/.exec(details) ?? [];
  if (before === undefined || after === undefined) return undefined;
  const [had, has] = [setOf(before), setOf(after)];
  const given = [...has].filter(([key, end]) => had.get(key) !== end);
  const taken = [...had.keys()].filter((key) => !has.has(key));
  const endOf = (key: string, end: string) => end || (had.has(key) ? ' without an end' : '');
  return {
    given: listed(given.map(([key, end]) => withLabels(key) + endOf(key, end))),
    taken: listed(taken.map(withLabels)),
  };
}

function listed(texts: readonly string[]): string {
  return texts.join(', ').replace(/, ([^,]*)$/, ' and $1');
}

/** The ends of keys, by key: ` until …`, or nothing. */
function setOf(text: string): Map<string, string> {
  const items = text === 'none' ? [] : text.split(', ');
  return new Map(items.map((one) => [one.split(' ')[0] ?? one, one.slice(one.split(' ')[0]?.length)]));
}
