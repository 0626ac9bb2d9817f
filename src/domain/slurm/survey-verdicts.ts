/** What a survey says of each account: whether it can be adopted, and what is in the way. Pure rules, the first that holds names it. */
import { homeOf, isUsername, privilegedGroups, usernamesFromEmail } from '../people/person.ts';
import { type FoundKeys, keysOf } from './survey-keys.ts';
import type { Judgement, PersonKeys, Verdict } from './survey-person.ts';
import {
  decides,
  groupName,
  groupsOf,
  type SurveyedAccount,
  type SurveyedHost,
  slurmUser,
} from './survey-report.ts';

/** An account as the controller has it, or else the first login node, and all that rules need to know. */
export interface Subject {
  account: SurveyedAccount;
  on: readonly { host: SurveyedHost; account: SurveyedAccount }[];
  hosts: readonly SurveyedHost[];
  /** Of the hosts, the controller and login nodes. What the others say is a difference. */
  deciding: readonly SurveyedHost[];
  keys: PersonKeys;
  /** Of the keys in this account, the other accounts that have one of them alone with it. */
  sharers: ReadonlySet<string>;
  manager: string;
}

interface Finding {
  /** Left out: worth knowing, but no obstacle. */
  verdict?: Verdict;
  reason: string;
  commands?: string[];
}

/** A lab's shared account has the keys of many; a person has one for each machine. */
const mostKeysOfPerson = 5;

export function subjectOf(
  name: string,
  { hosts, manager, found }: { hosts: readonly SurveyedHost[]; manager: string; found: FoundKeys },
): Subject {
  const on = hosts.flatMap((host) => {
    const account = host.accounts.get(name);
    return account ? [{ host, account }] : [];
  });
  const deciding = hosts.filter(decides);
  // The controller is the first one: jobs run with its numbers.
  const [account] = on.flatMap((one) => (deciding.includes(one.host) ? [one.account] : []));
  if (!account) throw new Error('an account that neither the controller nor a login node has');
  const alone = [...(found.byName.get(name)?.keys() ?? [])].flatMap((fingerprint) => {
    const others = [...(found.holders.get(fingerprint) ?? [])].filter((one) => one !== name);
    return others.length === 1 ? others : [];
  });
  return {
    ...{ account, on, hosts, deciding, manager },
    keys: keysOf(name, found),
    sharers: new Set(alone),
  };
}

const rules: readonly ((subject: Subject) => Finding[])[] = [
  otherName,
  otherNumbers,
  privileges,
  otherRights,
  otherHome,
  noKey,
  notes,
];

export function judge(subject: Subject): Judgement {
  const others = notPerson(subject);
  const findings = others.length > 0 ? others : rules.flatMap((rule) => rule(subject));
  return {
    verdict: findings.find(({ verdict }) => verdict)?.verdict ?? 'adopt',
    reasons: findings.map(({ reason }) => reason),
    commands: findings.flatMap(({ commands = [] }) => commands),
  };
}

function notPerson({ account, on, deciding, keys, sharers, manager }: Subject): Finding[] {
  const { name, uid, shell } = account;
  const known = on.filter(({ host }) => deciding.includes(host));
  const twin = [...(known[0]?.host.accounts.values() ?? [])].find(
    (other) =>
      other.name !== name &&
      known.every(({ host, account: own }) => host.accounts.get(other.name)?.uid === own.uid),
  );
  const count = keys.keys.length + keys.others.length;
  const reasons = [
    uid === 0 && 'it has the number 0, which is root',
    name === manager && 'it is the management account',
    (name === 'munge' || deciding.some(({ services }) => services.includes(name))) && 'a service runs as it',
    /\/(nologin|false|sync|shutdown|halt)$/.test(shell) && `its shell is ${shell}`,
    twin && uid !== 0 && `${twin.name} has the same number`,
    (count > mostKeysOfPerson || sharers.size > 1) && `${count} keys use it`,
  ];
  return reasons.flatMap((reason) => (reason ? [{ verdict: 'not_person', reason }] : []));
}

function otherName({ account: { name, gid }, hosts }: Subject): Finding[] {
  if (isUsername(name)) return [];
  const next = freeName(name, hosts);
  const old = quoted(name);
  const commands = [
    `usermod -l ${next} ${old}`,
    ...(groupName(hosts, gid) === name ? [`groupmod -n ${next} ${old}`] : []),
    ...(slurmUser(name, hosts)?.accounts.length
      ? [`sacctmgr modify user where name=${old} set newname=${next}`]
      : []),
  ];
  return [{ verdict: 'name', reason: `it could be ${next}`, commands }];
}

function freeName(name: string, hosts: readonly SurveyedHost[]): string {
  for (const next of usernamesFromEmail(name))
    if (!hosts.some(({ accounts }) => accounts.has(next))) return next;
  return name;
}

function otherNumbers({ account, on, hosts }: Subject): Finding[] {
  const { name, uid, gid } = account;
  const differing = on.flatMap(({ host, account: own }): Finding[] => {
    if (own.uid === uid && own.gid === gid) return [];
    const reason = `${host.host} has uid ${own.uid} and gid ${own.gid}, not ${uid} and ${gid}`;
    return [{ verdict: 'differs', reason, commands: mend(host, own, account) }];
  });
  const taken = hosts.flatMap((host): Finding[] => {
    const other = [...host.accounts.values()].find((one) => one.uid === uid && one.name !== name);
    return other ? [{ verdict: 'differs', reason: `${host.host} gives ${uid} to ${other.name}` }] : [];
  });
  return [...differing, ...taken];
}

/** Two commands for the host: one for the account, one for the files. */
function mend({ host, groups }: SurveyedHost, own: SurveyedAccount, wanted: SurveyedAccount): string[] {
  const name = quoted(own.name);
  const group = groups.find(({ gid }) => gid === own.gid)?.name;
  const account = [];
  const files = [];
  if (own.gid !== wanted.gid) {
    const isPrivate = group === own.name;
    account.push(isPrivate ? `groupmod -g ${wanted.gid} ${name}` : `usermod -g ${wanted.gid} ${name}`);
    if (isPrivate) files.push(`find / -xdev -group ${own.gid} -exec chgrp -h ${wanted.gid} {} +`);
  }
  if (own.uid !== wanted.uid) {
    account.push(`usermod -u ${wanted.uid} ${name}`);
    files.push(`find / -xdev -user ${own.uid} -exec chown -h ${wanted.uid} {} +`);
  }
  return [account, files].filter((one) => one.length > 0).map((one) => `${host}: ${one.join(' && ')}`);
}

function privileges({ account, deciding }: Subject): Finding[] {
  return rightsOn(deciding, account).map((reason) => ({ verdict: 'privileged', reason }));
}

function rightsOn(hosts: readonly SurveyedHost[], account: SurveyedAccount): string[] {
  const { name, uid, gid } = account;
  const sudoers = new Set(hosts.flatMap((host) => host.sudoers));
  const groups = [...groupsOf(account, hosts), groupName(hosts, gid)];
  const byGroup = groups.find((one) => privilegedGroups.includes(one) || sudoers.has(`%${one}`));
  return [
    ...(byGroup === undefined ? [] : [`it is in the group ${byGroup}`]),
    ...(sudoers.has(name) || sudoers.has(`#${uid}`) ? ['sudoers names it'] : []),
  ];
}

/** Rights and services of other hosts alone: the person stays as they are there. */
function otherRights({ account, on, deciding }: Subject): Finding[] {
  const known = rightsOn(deciding, account);
  return on.flatMap(({ host, account: own }): Finding[] => {
    if (deciding.includes(host)) return [];
    const rights = rightsOn([host], own).filter((right) => !known.includes(right));
    const services = host.services.includes(own.name) ? ['a service runs as it'] : [];
    return [...rights, ...services].map((right) => ({
      ...{ verdict: 'differs', reason: `on ${host.host} ${right}` },
    }));
  });
}

function otherHome({ account: { name, home }, on }: Subject): Finding[] {
  const wanted = homeOf(name);
  const logins = on.filter(({ host }) => host.roles.includes('login'));
  const isLinked = logins.length > 0 && logins.every(({ host }) => host.linked.includes(name));
  if (home === wanted || !isUsername(name) || isLinked) return [];
  const commands = [`ln -s ${quoted(home)} ${quoted(wanted)}`];
  return [{ verdict: 'home', reason: `its home is ${home}, not ${wanted}`, commands }];
}

function noKey({ keys: { keys, others, unread } }: Subject): Finding[] {
  if (keys.length > 0) return [];
  if (unread.length > 0) return [{ reason: `its keys on ${unread.join(', ')} are not known` }];
  const why = [...new Set(others.map(({ reason }) => `one ${reason}`))].join(', ');
  return [{ verdict: 'needs_key', reason: why === '' ? 'it has no key' : `of its keys, ${why}` }];
}

function notes({ account, on, hosts }: Subject): Finding[] {
  const { uid, home, password, expired } = account;
  const owner = hosts.map(({ homes }) => homes.get(home)?.owner).find((one) => one !== undefined);
  const missing = hosts.filter((host) => host.fault === null && !on.some((one) => one.host === host));
  const reasons = [
    expired && 'it has expired',
    password === 'locked' && 'its password is locked',
    password === 'empty' && 'it has an empty password',
    owner !== undefined && owner !== uid && `its home belongs to ${owner}`,
    missing.length > 0 && `it is not on ${missing.map(({ host }) => host).join(', ')}`,
  ];
  return reasons.flatMap((reason) => (reason ? [{ reason }] : []));
}

function quoted(text: string): string {
  return /^[\w.@+:/][\w.@+:/-]*$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
