/** The lab file's `slurm` section: an existing Slurm cluster, and how its hosts are reached and restarted. */
import type { LoginMode } from '../access/manifest.ts';
import { invalidRequest } from '../error.ts';
import { present } from '../present.ts';
import type { SlurmAccounting } from './accounting.ts';

/** A host as we reach it. With `local`, it is the one that this service runs on. */
export interface SlurmHost {
  host?: string;
  port?: number;
  /** `ssh-ed25519 AAAA…`; nothing is sent to a host that shows another. */
  hostKey?: string;
  local?: boolean;
}

interface SlurmLoginNode extends SlurmHost {
  name: string;
  /** As the gateway reaches it too; holds `{username}` where each person has their own. */
  host: string;
  hostKey: string;
}

export interface SlurmSettings {
  loginMode?: LoginMode;
  login: SlurmLoginNode[];
  controller: SlurmHost;
  /** Where slurmdbd runs (left out: on the controller), and what people's account there is like. */
  accounting?: SlurmHost & SlurmAccounting;
  /** `{name}` in `host` is the Slurm node's name. Left out: compute nodes are not visited. */
  compute?: SlurmHost;
  /** Slurm nodes that slurm.conf still names and that do not come back: nothing waits for them. */
  retired?: string[];
  /** The Slurm node that restarts with a configuration first; left out: one without jobs. */
  trialNode?: string;
  manage?: { user?: string; identityFile?: string };
  configFile?: string;
  /** `live`: nothing is restarted that need not be. Left out: `restart`, as the contract has it. */
  rollout?: SlurmRollout;
  /** Shell commands that run on the host itself; `{name}` is the Slurm node's name. */
  commands?: Partial<SlurmCommands>;
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

/** Throws `invalid_request` with the first thing in a `slurm` section that cannot be; `cluster` is its name. */
export function checkSlurmSettings(cluster: string, settings: SlurmSettings): void {
  const { login, controller, accounting, compute, manage, loginMode } = settings;
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
  const hosts = {
    ...Object.fromEntries(login.map((one) => [`login node ${one.name}`, one])),
    ...present({ controller, accounting: hasHost(accounting) ? accounting : undefined, compute }),
  };
  for (const [what, one] of Object.entries<SlurmHost>(hosts)) {
    if (one.host !== undefined && !hostPattern.test(one.host)) {
      throw wrong(`the ${what} has the host ${JSON.stringify(one.host)}, which is no name or address.`);
    }
    if (one.hostKey !== undefined && !hostKeyPattern.test(one.hostKey)) {
      throw wrong(`the hostKey of the ${what} is not a public key in OpenSSH format.`);
    }
    if (one.local) continue;
    if (one.host === undefined) throw wrong(`the ${what} needs a host, or local: true.`);
    if (one.hostKey === undefined && what !== 'compute') throw wrong(`the ${what} needs its hostKey.`);
    if (manage?.identityFile === undefined) {
      throw wrong(`the ${what} is reached over SSH, which needs manage.identityFile.`);
    }
  }
  for (const name of [accounting, accounting?.roles?.admin].flatMap((one) => Object.keys(one?.grpTres ?? {})))
    if (!/^[a-z]+(\/[a-z0-9_:.-]+)?$/.test(name))
      throw wrong(`grpTres names ${JSON.stringify(name)}, which is no resource of Slurm.`);
  if (settings.configFile !== undefined && !/^\/[A-Za-z0-9._/-]+$/.test(settings.configFile)) {
    throw wrong('configFile is the absolute path of slurm.conf.');
  }
}

export function hasHost(accounting: SlurmSettings['accounting']): accounting is SlurmHost & SlurmAccounting {
  return accounting?.host !== undefined || accounting?.local === true;
}

/** What a plan says of a cluster that restarts for people who come and go, which is the default; undefined: nothing. */
export function restartsForPeople(slurm: SlurmSettings | undefined): string | undefined {
  if (slurm === undefined || slurm.rollout === 'live') return undefined;
  return 'rollout restart: each first key or lost account ends all sessions and jobs there (live ends only those of people who go)';
}
