/** The lab file's `slurm` section: an existing Slurm cluster, and how its hosts are reached and restarted. */
import type { LoginMode } from '../access/manifest.ts';
import { invalidRequest } from '../error.ts';
import { present } from '../present.ts';
import type { SlurmAccounting } from './accounting.ts';
import type { SlurmDirect } from './direct.ts';
import { faultOfVia, hopOf, identityOf, type Via } from './hop.ts';

/** A host and its SSH address. With `local`, it is the host that this service runs on. */
export interface SlurmHost {
  host?: string;
  port?: number;
  /** `ssh-ed25519 AAAA…`; the connection is refused when the host shows another key. */
  hostKey?: string;
  local?: boolean;
  /** Where the host's people come from; absent: files. */
  accounts?: HostAccounts;
  /** The host that this one is reached through, as with `ssh -J`. */
  via?: Via;
}

/** `directory`: the site's own (sssd, NIS), which is not written to. `copied`: the files of another host. */
export type HostAccounts = 'files' | 'copied' | 'directory';

interface SlurmLoginNode extends SlurmHost {
  name: string;
  /** The gateway connects to this address too; contains `{username}` where each person has a login node of their own. */
  host: string;
  hostKey: string;
}

export interface SlurmSettings {
  loginMode?: LoginMode;
  login: SlurmLoginNode[];
  controller: SlurmHost;
  /** The host of slurmdbd (absent: the controller), and the settings of people's accounts in Slurm's accounting. */
  accounting?: SlurmHost & SlurmAccounting;
  /** `{name}` in `host` is the Slurm node's name. Absent: the service does not connect to compute nodes. */
  compute?: SlurmHost;
  /** Slurm nodes that slurm.conf still names and that do not come back: the service does not wait for them. */
  retired?: string[];
  /** The Slurm node that restarts first with a new configuration; absent: one without jobs. */
  trialNode?: string;
  manage?: { user?: string; identityFile?: string };
  configFile?: string;
  /** Accounts that hosts have with the names and numbers of members become ours. Absent: another's account is never touched. */
  adopt?: boolean;
  /** Usernames of people who may become root on hosts and are adopted all the same. */
  adoptPrivileged?: string[];
  /** `live`: only unavoidable restarts. Absent: `restart`, as the contract says. */
  rollout?: SlurmRollout;
  /** Who logs in to the login nodes past the gateway, while the lab moves in. */
  direct?: SlurmDirect;
  /** The file server that makes homes, in `path`; absent: each host makes them in /home. */
  homes?: SlurmHost & { path: string };
  /**
   * Shell commands that run on the host itself; `{name}` is the Slurm node's name. `makeHome` makes the home of `{username}`
   * (`{uid}`, `{gid}`), on the server of homes or else on the controller, and may run again.
   */
  commands?: Partial<SlurmCommands> & { makeHome?: string };
}

export type SlurmRollout = 'restart' | 'live';

export interface SlurmCommands {
  restartLogin: string;
  restartController: string;
  restartAccounting: string;
  restartCompute: string;
}

export const defaultSlurmCommands: Readonly<SlurmCommands> = {
  restartLogin: 'systemctl restart ssh',
  restartController: 'systemctl restart slurmctld',
  restartAccounting: 'systemctl restart slurmdbd',
  restartCompute: 'systemctl restart slurmd',
};

export const defaultSlurmConfigFile = '/etc/slurm/slurm.conf';

const hostPattern = /^[A-Za-z0-9_{][A-Za-z0-9._:{}%-]*$/;
const hostKeyPattern = /^[a-z0-9@.-]+ [A-Za-z0-9+/]+={0,2}( [^\n\r]*)?$/;

/** Throws `invalid_request` for the first invalid setting of a `slurm` section; `cluster` is its name. */
export function checkSlurmSettings(cluster: string, settings: SlurmSettings): void {
  const { login, accounting, homes, manage, loginMode } = settings;
  const wrong = (message: string) => invalidRequest(`Cluster ${cluster}: ${message}`);
  const names = new Set(login.map(({ name }) => name));
  if (names.size < login.length) throw wrong('two login nodes have the same name.');
  for (const { name, host } of login) {
    if (host.includes('{username}') === (loginMode === 'PerUser')) continue;
    throw wrong(
      loginMode === 'PerUser'
        ? `each person has their own login node, so the host of ${name} needs {username} in it.`
        : `the host of login node ${name} has {username} in it, which needs loginMode: PerUser.`,
    );
  }
  const named = namedHosts(settings);
  const hops = named.flatMap(([what, { via }]): [string, SlurmHost][] =>
    typeof via === 'object' ? [[`hop before the ${what}`, via]] : [],
  );
  for (const [what, one] of [...named, ...hops]) {
    if (one.host !== undefined && !hostPattern.test(one.host)) {
      throw wrong(`the ${what} has the host ${JSON.stringify(one.host)}, which is no name or address.`);
    }
    if (one.hostKey !== undefined && !hostKeyPattern.test(one.hostKey)) {
      throw wrong(`the hostKey of the ${what} is not a public key in OpenSSH format.`);
    }
    const viaFault = faultOfVia(settings, one);
    if (viaFault !== undefined) throw wrong(`the ${what} ${viaFault}`);
    if (one.local) continue;
    if (one.host === undefined) throw wrong(`the ${what} needs a host, or local: true.`);
    if (one.hostKey === undefined && what !== 'compute') throw wrong(`the ${what} needs its hostKey.`);
    if (manage?.identityFile === undefined) {
      throw wrong(`the ${what} is reached over SSH, which needs manage.identityFile.`);
    }
  }
  const contradiction = contradictionOf(settings, named);
  if (contradiction !== undefined) throw wrong(contradiction);
  for (const name of [accounting, accounting?.roles?.admin].flatMap((one) => Object.keys(one?.grpTres ?? {})))
    if (!/^[a-z]+(\/[a-z0-9_:.-]+)?$/.test(name))
      throw wrong(`grpTres names ${JSON.stringify(name)}, which is no resource of Slurm.`);
  if (settings.configFile !== undefined && !/^\/[A-Za-z0-9._/-]+$/.test(settings.configFile)) {
    throw wrong('configFile is the absolute path of slurm.conf.');
  }
  if (homes && !/^(\/[A-Za-z0-9_][A-Za-z0-9._-]*)+$/.test(homes.path)) {
    throw wrong('homes needs the absolute path of the directory with homes on its host.');
  }
}

/** The entries of hosts, by what a message calls them. */
function namedHosts({ login, controller, accounting, compute, homes }: SlurmSettings): [string, SlurmHost][] {
  const others = {
    controller,
    accounting: hasHost(accounting) ? accounting : undefined,
    compute,
    'host of homes': homes,
  };
  return [
    ...login.map((one): [string, SlurmHost] => [`login node ${one.name}`, one]),
    ...Object.entries<SlurmHost>(present(others)),
  ];
}

/** What the entries of one host say that cannot both be; undefined: nothing. */
function contradictionOf(settings: SlurmSettings, named: [string, SlurmHost][]): string | undefined {
  for (const entries of Map.groupBy(named, ([, one]) => identityOf(one)).values()) {
    const are = `the ${entries.map(([what]) => what).join(' and the ')} are the same host`;
    const ways = new Set(entries.map(([, { via }]) => JSON.stringify(hopOf(settings, via))));
    if (ways.size > 1) return `${are}, which cannot be reached in two ways: give each the same via.`;
    const accounts = new Set(entries.flatMap(([, one]) => one.accounts ?? []));
    if (accounts.size > 1) return `${are}, whose accounts cannot be ${[...accounts].join(' and ')}.`;
  }
  return undefined;
}

export function hasHost(accounting: SlurmSettings['accounting']): accounting is SlurmHost & SlurmAccounting {
  return accounting?.host !== undefined || accounting?.local === true;
}

function areFromDirectory({ login, controller, accounting, compute }: SlurmSettings): boolean[] {
  const hosts = [...login, controller, hasHost(accounting) ? accounting : controller, compute];
  return hosts.flatMap((host) => (host ? host.accounts === 'directory' : []));
}

/** Whether a directory gives people their numbers: they come from it on a login node or the controller. */
export function usesDirectory(slurm: SlurmSettings | undefined): boolean {
  return (
    slurm !== undefined && [...slurm.login, slurm.controller].some((host) => host.accounts === 'directory')
  );
}

/** The rollout of people who come and go: nothing restarts for them where all hosts have them from a directory. */
export function rolloutForPeople(slurm: SlurmSettings | undefined): SlurmRollout {
  if (slurm === undefined) return 'restart';
  return areFromDirectory(slurm).includes(false) ? (slurm.rollout ?? 'restart') : 'live';
}

/** The warning in a plan about restarts of this cluster when people come and go; undefined: no warning. */
export function restartsForPeople(slurm: SlurmSettings | undefined): string | undefined {
  if (slurm === undefined || slurm.rollout === 'live') return undefined;
  if (rolloutForPeople(slurm) === 'live')
    return 'accounts directory: nothing restarts for people; those who go lose sessions, processes and jobs, and stay in the directory';
  return 'rollout restart: each first key or lost account ends all sessions and jobs there (live ends only those of people who go)';
}
