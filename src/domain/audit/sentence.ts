/**
 * Formats an entry of the audit trail as a sentence: who did what to whom on which cluster, and why. The console and
 * the command line show the same sentence.
 */
import { permissionLabels } from '../access/permission.ts';

/** The fields of the API's audit entry that a sentence needs. */
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

interface SentencePart {
  text: string;
  of?: 'actor' | 'subject' | 'cluster';
}

function isRefused({ result }: Pick<NamedEntry, 'result'>): boolean {
  return result !== 'done';
}

/** The parts of the sentence; `refused` is the reason for the refusal. */
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
  // The gateway's own reason takes the position of the person's, who gave none.
  const isOfGateway = entry.operation === 'ssh.login.refused';
  const code = entry.result.replace(/^refused(: )?/, '');
  return isOfGateway
    ? { parts, reason: '', refused: entry.reason }
    : { parts, reason: entry.reason, refused: entry.details || code };
}

export function sentenceText(entry: NamedEntry): string {
  const { parts, reason, refused } = auditSentence(entry);
  const text = parts.map(({ text }) => text).join('');
  const why = reason === '' ? text : `${text}: ${reason}`;
  return refused === undefined ? why : `${why} – refused: ${refused}`;
}

export function actionLabel(operation: string): string {
  const { verbs, rest } = phraseOf(operation);
  const text = `${verbs[1]} ${filled(rest, {})
    .map((part) => part.text)
    .join('')}`.replace(/^’s /, '');
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

export function auditOperations(): string[] {
  return Object.keys(phrases);
}

function changePhrase({ operation }: NamedEntry, { given, taken }: Values): string | undefined {
  if (!given && !taken) return undefined;
  const where =
    operation === 'approveAccessRequest' ? '[ on {cluster}], as requested' : '[ in {organization}]';
  if (!taken) return `gave|give {subject} {given}${where}`;
  return given
    ? `gave|give {subject} {given} and took {taken}${where}`
    : `took|take {taken} from {subject}${where}`;
}

/** The verbs for a done and a refused operation, and the rest of the phrase. Operations of other versions get a generic phrase. */
function phraseOf(operation: string, phrase = phrases[operation]): { verbs: [string, string]; rest: string } {
  const [, done = '', tried = '', rest = ''] =
    /^(\S+)\|(\S+) (.*)$/.exec(phrase ?? `did|do ${operation}[ on {target}]`) ?? [];
  return { verbs: [done, tried], rest };
}

type Values = Partial<Record<string, SentencePart>>;

/** Fallbacks for placeholders that the entry has no value for. */
const generic: Readonly<Record<string, string>> = {
  subject: 'a person',
  organization: 'an organization',
  cluster: 'a cluster',
  relation: 'Kubernetes access',
};

/** Fills the placeholders of a phrase; text in brackets is dropped if one of its placeholders has no value. */
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

function withLabels(text: string): string {
  return text.replace(anyKey, (key) => permissionLabels[key as keyof typeof permissionLabels]);
}

/** The permissions given and taken by a change, parsed from `permissions A → B`. */
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

function setOf(text: string): Map<string, string> {
  const items = text === 'none' ? [] : text.split(', ');
  return new Map(items.map((one) => [one.split(' ')[0] ?? one, one.slice(one.split(' ')[0]?.length)]));
}

const kinds = ['person', 'organization', 'member', 'team', 'cluster', 'grant'] as const;
const stepsOf = (kind: (typeof kinds)[number]) => ({
  [`operatorApplyLab.${kind}.create`]: `added|add the ${kind}[ {target}] by lab file[ ({details})]`,
  [`operatorApplyLab.${kind}.update`]: `changed|change the ${kind}[ {target}] by lab file[ ({details})]`,
  [`operatorApplyLab.${kind}.remove`]: `removed|remove the ${kind}[ {target}] by lab file[ ({details})]`,
});

/**
 * The phrase of each operation, which follows the name of the actor: the verb as done and as tried, then the rest.
 * `{subject}` is the person affected; text in brackets is dropped if the entry lacks its values.
 */
const phrases: Readonly<Record<string, string>> = {
  registerSshKey: 'added|add an SSH key[ ({details})]',
  renameSshKey: 'named|name an SSH key[ ({details})]',
  revokeSshKey: 'revoked|revoke an SSH key[ ({details})]',
  setLoginPreferences: 'set|set the login shell[ to {details}]',
  closeMySession: 'closed|close an own SSH session[ on {cluster}]',
  changeOwnPassword: 'changed|change the own password',
  usePasswordLink: 'set|set a password by the link of an operator',
  setUpSecondFactor: 'enabled|enable a second factor',
  renewRecoveryCodes: 'made|make new recovery codes',
  removeSecondFactor: 'removed|remove the own second factor',
  signOutEverywhere: 'ended|end all their own sign-ins',
  bindIdentity: 'signed|sign in for the first time',
  followEmail: 'changed|change the own address[: {details}]',
  joinByDomain: 'added|add {subject}[ to {organization}] by the domain of the address',
  followGroups: 'changed|change what {subject} has[ in {organization}] by groups[: {details}]',
  requestAccess: 'requested|request access[: {details}][ on {cluster}][ in {organization}]',
  withdrawAccessRequest: 'withdrew|withdraw a request for access[: {details}]',
  'ssh.login.refused': 'logged|log in over SSH[ to {cluster}]',
  'ssh.session.opened': 'logged|log in over SSH[ to {cluster}]',
  'ssh.session.closed': '’s|’s SSH session[ on {cluster}] ended',
  furtherRefusals: 'had|have further attempts refused within a minute[: {details}]',
  // Operations in an organization.
  addMember: 'added|add {subject} to {organization}[ as {role}]',
  setMemberRole: 'changed|change the role of {subject}[ to {after}][ in {organization}]',
  setMemberUsername: 'set|set the login name of {subject}[ to {after}][ in {organization}]',
  setMemberPermissions: 'set|set the permissions of {subject}[ in {organization}]',
  removeMember: 'removed|remove {subject} from {organization}',
  setTeam: 'set|set the team[ {target}][ in {organization}][ ({details})]',
  removeTeam: 'removed|remove the team[ {target}][ of {organization}]',
  endReviewedAccess: 'limited|limit the access of {subject}[ in {organization}][: {details}]',
  approveAccessRequest: 'approved|approve a request for access of {subject}[ on {cluster}]',
  declineAccessRequest: 'declined|decline a request for access of {subject}[ ({details})][ on {cluster}]',
  quotePurchase: 'asked|ask for the price of storage[ on {cluster}][: {details}]',
  createPurchase: 'ordered|order storage[ on {cluster}][: {details}]',
  retireOrganization: 'retired|retire {organization}',
  setSchedulerConfiguration: 'changed|change the Slurm configuration of {cluster}[ ({details})]',
  setDefaultSchedulerConfiguration:
    'changed|change the Slurm configuration of new clusters[ in {organization}][ ({details})]',
  // Operations of operators.
  operatorCreateOrganization: 'created|create the organization[ {name}]',
  operatorUpdateOrganization: 'changed|change {organization}[: {details}]',
  operatorCreatePerson: 'created|create an account for {subject}',
  operatorSetStaffKeys: 'set|set the staff keys of {subject}[ to {after}]',
  operatorSetPassword: 'set|set a new password for {subject}',
  operatorCreatePasswordLink: 'made|make a link for {subject} to set a password',
  operatorResetSecondFactor: 'took|take the second factor of {subject}[: {details}]',
  operatorRebindIdentity: 'changed|change the sign-in of {subject}[: {details}]',
  operatorUnbindIdentity: 'took|take a sign-in from {subject}[: {details}]',
  operatorSetPersonEmail: 'changed|change the address of {subject}[ to {after}]',
  operatorSetSignInExemption: 'let|let access of {subject} last without a sign-in[: {details}]',
  operatorErasePerson: 'erased|erase {subject}',
  operatorDeactivatePerson: 'deactivated|deactivate {subject}',
  operatorReactivatePerson: 'reactivated|reactivate {subject}',
  operatorCreateGrant: 'gave|give {subject} {relation}[ on {cluster}]',
  operatorRevokeGrant: 'took|take {relation} from {subject}[ on {cluster}]',
  operatorCreateCluster: 'created|create the cluster[ {name}]',
  operatorReleaseCluster: 'took|take {cluster} out of service',
  operatorAdmitMachine: 'admitted|admit a machine[ of {cluster}][: {details}]',
  operatorQuarantineMachine: 'quarantined|quarantine a machine[ of {cluster}][: {details}]',
  operatorAcceptPurchase: 'accepted|accept an order of storage[ on {cluster}][: {details}]',
  operatorDeclinePurchase: 'declined|decline an order of storage[ on {cluster}][: {details}]',
  operatorCloseSession: 'closed|close an SSH session of {subject}[ on {cluster}]',
  operatorApplyLab: 'applied|apply a lab file[: {details}]',
  ...Object.assign({}, ...kinds.map(stepsOf)),
  // Operations on the host.
  createInstallation: 'created|create the installation[ from {target}]',
  bootstrap: 'made|make {subject} an operator',
  newKey: 'made|make a new[ {target}] key[ ({details})]',
  rotateSecretsKey: 'encrypted|encrypt the secrets with another key[, {target}]',
  acceptAuditBreak: 'accepted|accept the break of the audit trail[ at entry {target}]',
  deleteAuditEntries: 'deleted|delete the old audit entries[ {target}]',
};
