/** What a host reports in a survey of a cluster. Nothing here is of our making: names and texts are whatever the site has. */

export interface SurveyedAccount {
  source: string;
  name: string;
  uid: number;
  gid: number;
  gecos: string;
  home: string;
  shell: string;
  /** `none`: there never was one; `locked`: it was put out of use; `unknown`: a directory keeps it to itself. */
  password: 'set' | 'none' | 'locked' | 'empty' | 'unknown';
  /** Also where a directory's account is refused by PAM's account step. */
  expired: boolean;
}

export interface SurveyedLogin {
  host: string;
  name: string;
  from: string;
  /** Empty for a login without a key. */
  fingerprint: string;
  times: number;
  /** As the host's log has it. */
  last: string;
}

/** What one host reported; empty lists and the fault for a host that did not answer. */
export interface SurveyedHost {
  host: string;
  roles: readonly string[];
  fault: string | null;
  accounts: ReadonlyMap<string, SurveyedAccount>;
  /** The names that may be people's. */
  candidates: readonly string[];
  groups: readonly { name: string; gid: number; members: readonly string[] }[];
  /** For people of a directory, their groups' numbers. */
  memberships: ReadonlyMap<string, readonly number[]>;
  homes: ReadonlyMap<string, { owner: number; mode: string }>;
  /** Names of folders in /home. */
  homeNames: readonly string[];
  /** Homes that root cannot read. */
  closed: readonly string[];
  keys: readonly { name: string; file: string; line: string }[];
  keysCommand: string | undefined;
  logins: readonly SurveyedLogin[];
  /** As sudoers has them: names, `%group`, `#number`. */
  sudoers: readonly string[];
  services: readonly string[];
  writers: readonly string[];
  passwdSum: string | undefined;
  krb5: readonly string[];
  directories: readonly string[];
  notes: readonly string[];
  nodes: readonly string[];
  groupUpdateSeconds: number | undefined;
  associations: readonly {
    name: string;
    account: string;
    defaultAccount: string;
    adminLevel: string;
    coordinates: readonly string[];
  }[];
  jobs: ReadonlyMap<string, { running: number; pending: number }>;
  usage: readonly { name: string; tres: string; hours: number }[];
}

export function groupName(hosts: readonly SurveyedHost[], gid: number): string {
  return hosts.flatMap(({ groups }) => groups).find((one) => one.gid === gid)?.name ?? `${gid}`;
}

/** The groups of an account on any host, the primary one left out. */
export function groupsOf({ name, gid }: SurveyedAccount, hosts: readonly SurveyedHost[]): string[] {
  const found = hosts.flatMap((host) => [
    ...host.groups.filter(({ members }) => members.includes(name)).map((one) => one.name),
    ...(host.memberships.get(name) ?? []).map((number) => groupName(hosts, number)),
  ]);
  return [...new Set(found)].filter((one) => one !== groupName(hosts, gid));
}

/** Slurm's accounting has all names in small letters, unless a site says otherwise. */
export function associationsOf(name: string, hosts: readonly SurveyedHost[]): SurveyedHost['associations'] {
  const isOwn = (one: string) => one === name || one === name.toLowerCase();
  return hosts.flatMap(({ associations }) => associations.filter((one) => isOwn(one.name)));
}
