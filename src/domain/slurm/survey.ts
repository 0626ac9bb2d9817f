/** A survey of a cluster: what its hosts report of accounts that are there already, merged to one entry for each person. */
import { findKeys } from './survey-keys.ts';
import type { ClusterSurvey, Judgement, PersonKeys, SurveyedPerson } from './survey-person.ts';
import {
  believed,
  decides,
  groupName,
  groupsOf,
  type SlurmUser,
  type SurveyedAccount,
  type SurveyedHost,
  slurmUser,
} from './survey-report.ts';
import { judge, subjectOf } from './survey-verdicts.ts';

export interface SurveyScope {
  /** The management user, which is not a person. */
  manager: string;
  /** Fingerprints of the gateway's keys, which open every account. */
  gatewayKeys: readonly string[];
}

export function mergeSurvey(
  reports: readonly SurveyedHost[],
  { manager, gatewayKeys }: SurveyScope,
): ClusterSurvey {
  const hosts = reports.map(believed);
  const deciding = hosts.filter(decides);
  const names = new Set(
    deciding.flatMap(({ accounts, candidates }) => candidates.filter((name) => accounts.has(name))),
  );
  const found = findKeys(hosts, gatewayKeys);
  const people = [...names].sort().map((name): SurveyedPerson => {
    const subject = subjectOf(name, { hosts, manager, found });
    return { ...describe(subject.account, deciding), ...subject.keys, ...judge(subject) };
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
    slurm: slurmUser(name, hosts) ?? noSlurm,
    logins: hosts.flatMap(({ logins }) =>
      logins.filter((one) => one.name === name).map(({ name: _, ...login }) => login),
    ),
  };
}

const noSlurm: SlurmUser = {
  ...{ accounts: [], default: '', level: '', coordinates: [] },
  ...{ cpu: 0, gpu: 0, running: 0, pending: 0 },
};

function noticesOf(hosts: readonly SurveyedHost[]): string[] {
  const answered = hosts.filter(({ fault }) => fault === null);
  const each = (kind: string, prefix = '') =>
    answered.flatMap(({ host, notices }) =>
      notices.filter((one) => one.kind === kind).map(({ text }) => `${host}: ${prefix}${text}`),
    );
  const isCopied = answered.length > 1 && new Set(answered.map(({ passwdSum }) => passwdSum)).size === 1;
  return [
    ...each('first'),
    ...hosts.flatMap(({ host, fault }) =>
      fault === null ? [] : [`${host} is not in this survey: ${fault}`],
    ),
    ...answered.flatMap((host) =>
      host.directories.map((name) => `${host.host}: ${directoryText(name, host)}`),
    ),
    ...each('writer', 'may write account files: '),
    ...hosts.flatMap((host) => unknownAccounts(host, hosts)),
    ...(isCopied ? ['All hosts have the same /etc/passwd: it is copied from one to the others.'] : []),
    ...each('other'),
  ];
}

/** Accounts of a compute node alone are of no person here. */
function unknownAccounts(host: SurveyedHost, hosts: readonly SurveyedHost[]): string[] {
  if (decides(host)) return [];
  const names = host.candidates.filter(
    (name) => !hosts.some((one) => decides(one) && one.accounts.has(name)),
  );
  if (names.length === 0) return [];
  const shown = names.length > 5 ? [...names.slice(0, 5), `${names.length - 5} more`] : names;
  return [`${host.host}: neither the controller nor a login node has ${shown.join(', ')}`];
}

function directoryText(name: string, { accounts }: SurveyedHost): string {
  return [...accounts.values()].some(({ source }) => source === 'directory')
    ? `people come from a directory (${name})`
    : `the directory (${name}) knew none of the names: that does not say that they are gone`;
}
