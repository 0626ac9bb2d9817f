/** A survey of a cluster: what its hosts report of accounts that are there already, merged to one entry for each person. */
import { findKeys } from './survey-keys.ts';
import type { ClusterSurvey, Judgement, PersonKeys, SurveyedPerson } from './survey-person.ts';
import {
  associationsOf,
  groupName,
  groupsOf,
  type SurveyedAccount,
  type SurveyedHost,
} from './survey-report.ts';
import { judge, subjectOf } from './survey-verdicts.ts';

export interface SurveyScope {
  /** The management user, which is not a person. */
  manager: string;
  /** Fingerprints of the gateway's keys, which open every account. */
  gatewayKeys: readonly string[];
}

export function mergeSurvey(
  hosts: readonly SurveyedHost[],
  { manager, gatewayKeys }: SurveyScope,
): ClusterSurvey {
  const names = new Set(hosts.flatMap(({ candidates }) => candidates));
  for (const { name } of hosts.flatMap(({ associations }) => associations))
    if (name !== 'root' && hosts.some(({ accounts }) => accounts.has(name))) names.add(name);
  const found = findKeys(hosts, gatewayKeys);
  const people = [...names].sort().map((name): SurveyedPerson => {
    const subject = subjectOf(name, { hosts, manager, found });
    return { ...describe(subject.account, hosts), ...subject.keys, ...judge(subject) };
  });
  return { notices: noticesOf(hosts), hosts: hosts.map(hostLine), people };
}

function hostLine({ host, roles, fault }: SurveyedHost) {
  return { host, roles: [...roles], fault };
}

function describe(
  account: SurveyedAccount,
  hosts: readonly SurveyedHost[],
): Omit<SurveyedPerson, keyof PersonKeys | keyof Judgement> {
  const { name, uid, gid, gecos, home: path, shell, source, password, expired } = account;
  const home = hosts.find(({ homes }) => homes.has(path))?.homes.get(path);
  const isClosed = hosts.some(({ closed }) => closed.includes(path));
  return {
    username: name,
    ...{ uid, gid, shell, source, password, expired },
    group: groupName(hosts, gid),
    groups: groupsOf(account, hosts),
    name: gecos.split(',')[0]?.trim() ?? '',
    home: { path, owner: home?.owner ?? null, mode: home?.mode ?? null, closed: isClosed },
    slurm: slurmOf(name, hosts),
    logins: hosts.flatMap(({ logins }) =>
      logins.filter((one) => one.name === name).map(({ name: _, ...login }) => login),
    ),
  };
}

function slurmOf(name: string, hosts: readonly SurveyedHost[]): SurveyedPerson['slurm'] {
  const own = associationsOf(name, hosts);
  const usage = hosts.flatMap((host) => host.usage.filter((one) => one.name === own[0]?.name));
  const hoursOf = (tres: string) =>
    usage.reduce((sum, { tres: found, hours }) => sum + (found === tres ? hours : 0), 0);
  return {
    accounts: [...new Set(own.map(({ account }) => account).filter(Boolean))],
    default: own[0]?.defaultAccount ?? '',
    level: own[0]?.adminLevel ?? '',
    coordinates: [...new Set(own.flatMap(({ coordinates }) => coordinates))],
    cpu: hoursOf('cpu'),
    gpu: hoursOf('gres/gpu'),
    ...(hosts.map(({ jobs }) => jobs.get(name)).find(Boolean) ?? { running: 0, pending: 0 }),
  };
}

function noticesOf(hosts: readonly SurveyedHost[]): string[] {
  const answered = hosts.filter(({ fault }) => fault === null);
  const each = (texts: (host: SurveyedHost) => readonly string[]) =>
    answered.flatMap((host) => texts(host).map((text) => `${host.host}: ${text}`));
  const hasPeople = ({ accounts }: SurveyedHost) =>
    [...accounts.values()].some(({ source }) => source === 'directory');
  const isCopied = answered.length > 1 && new Set(answered.map(({ passwdSum }) => passwdSum)).size === 1;
  return [
    ...each(({ krb5 }) => krb5.map((path) => `${path} needs Kerberos (sec=krb5), which is not supported`)),
    ...hosts.flatMap(({ host, fault }) =>
      fault === null ? [] : [`${host} is not in this survey: ${fault}`],
    ),
    ...each((host) =>
      host.directories.map((name) =>
        hasPeople(host)
          ? `people come from a directory (${name})`
          : `the directory (${name}) knew none of the names: that does not say that they are gone`,
      ),
    ),
    ...each(({ writers }) => writers.map((name) => `may write account files: ${name}`)),
    ...(isCopied ? ['All hosts have the same /etc/passwd: it is copied from one to the others.'] : []),
    ...each(({ keysCommand: command }) => (command ? [`sshd asks for keys: ${command}`] : [])),
    ...each(({ groupUpdateSeconds: seconds }) =>
      seconds === undefined ? [] : [`Slurm reads groups again after ${seconds} s (GroupUpdateTime)`],
    ),
    ...each(({ notes }) => notes),
  ];
}
