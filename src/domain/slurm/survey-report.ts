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
  homes: ReadonlyMap<string, { owner: number; mode: string }>;
  /** Names whose home has another path, to which /home/NAME leads. */
  linked: readonly string[];
  /** Names of folders in /home. */
  homeNames: readonly string[];
  /** Homes that root cannot read. */
  closed: readonly string[];
  keys: readonly { name: string; file: string; line: string }[];
  /** Names whose keys were read, all of them. */
  read: readonly string[];
  logins: readonly SurveyedLogin[];
  /** As sudoers has them: names, `%group`, `#number`. */
  sudoers: readonly string[];
  services: readonly string[];
  passwdSum: string | undefined;
  directories: readonly string[];
  notices: readonly { kind: 'first' | 'writer' | 'other'; text: string }[];
  nodes: readonly string[];
  /** By username in small letters. */
  slurm: ReadonlyMap<string, SlurmUser>;
}

/** Hours are of the last 365 days. */
export interface SlurmUser {
  accounts: string[];
  default: string;
  level: string;
  coordinates: string[];
  cpu: number;
  gpu: number;
  running: number;
  pending: number;
}

/** What a host may say of people: root on one compute node must not decide who has which key, or who is in Slurm's accounting. */
export function believed(host: SurveyedHost): SurveyedHost {
  const nothing = { keys: [], read: [], logins: [], homes: new Map(), linked: [], closed: [] };
  return {
    ...host,
    ...(host.roles.includes('login') ? {} : nothing),
    ...(host.roles.includes('controller') ? {} : { slurm: new Map(), nodes: [] }),
  };
}

/** Whether a host decides about people: the controller, then login nodes. What only the others say is a difference. */
export function decides({ roles }: SurveyedHost): boolean {
  return roles.includes('controller') || roles.includes('login');
}

export function groupName(hosts: readonly SurveyedHost[], gid: number): string {
  return hosts.flatMap(({ groups }) => groups).find((one) => one.gid === gid)?.name ?? `${gid}`;
}

/** The groups of an account on any host, the primary one left out. */
export function groupsOf({ name, gid }: SurveyedAccount, hosts: readonly SurveyedHost[]): string[] {
  const found = hosts.flatMap(({ groups }) => groups).filter(({ members }) => members.includes(name));
  return [...new Set(found.map((one) => one.name))].filter((one) => one !== groupName(hosts, gid)).sort();
}

export function slurmUser(name: string, hosts: readonly SurveyedHost[]): SlurmUser | undefined {
  return hosts.map(({ slurm }) => slurm.get(name.toLowerCase())).find(Boolean);
}
