/** The hosts of a Slurm cluster with their roles. A host that the settings name several times is one host. */
import type { LoginNodeReport } from '../../domain/access/manifest.ts';
import { present } from '../../domain/present.ts';
import { addressOf, type Hop, hopOf, sshPort } from '../../domain/slurm/hop.ts';
import {
  type HostAccounts,
  hasHost,
  type SlurmHost,
  type SlurmSettings,
} from '../../domain/slurm/settings.ts';

export type Role = 'login' | 'controller' | 'accounting' | 'compute' | 'homes';

export interface Host {
  /** `host:port`, or `local`: identifies the host, also in messages. */
  address: string;
  reach?: { host: string; port: number; hostKey?: string | undefined; via?: Hop };
  roles: ReadonlySet<Role>;
  nodes: readonly string[];
  /** Absent: files, or a host that is in no settings any more. */
  accounts?: HostAccounts;
}

/** The name that a site uses: the Slurm node names of a compute node, the address of any other host. */
export function nameOf({ address, nodes }: Pick<Host, 'address' | 'nodes'>): string {
  return nodes.length > 0 ? nodes.join(',') : address;
}

/** Whether people need the host before a compute node: changes go to these hosts first. */
export function isInFront({ roles }: Host): boolean {
  return (['login', 'controller', 'accounting', 'homes'] as const).some((role) => roles.has(role));
}

/** A login node as the gateway and reports know it; `address` is its host's. */
export interface LoginNode
  extends Pick<LoginNodeReport, 'name' | 'host' | 'port' | 'hostKey' | 'via' | 'username'> {
  address: string;
  accounts?: HostAccounts;
}

export function loginNodesOf(settings: SlurmSettings, usernames: readonly string[]): LoginNode[] {
  const { login, loginMode } = settings;
  const nodeOf = (one: SlurmSettings['login'][number], username?: string): LoginNode => {
    const fill = (text: string) => (username === undefined ? text : text.replaceAll('{username}', username));
    const { port = sshPort, hostKey } = one;
    const host = fill(one.host);
    const address = one.local ? 'local' : addressOf({ host, port });
    const name = username === undefined ? one.name : `${one.name}-${username}`;
    const { accounts } = one;
    const via = hopOf(settings, one.via);
    return { name, address, host, port, hostKey, ...present({ via, username, accounts }) };
  };
  if (loginMode !== 'PerUser') return login.map((one) => nodeOf(one));
  return usernames.flatMap((username) => login.map((one) => nodeOf(one, username)));
}

/** All hosts, the controller first. `nodes`: the names of the Slurm nodes known so far. */
export function hostsOf(
  settings: SlurmSettings,
  { nodes, usernames }: { nodes: readonly string[]; usernames: readonly string[] },
): Host[] {
  const found = new Map<string, Host & { roles: Set<Role>; nodes: string[] }>();
  const add = (one: SlurmHost, role: Role, node?: string) => {
    const host = (one.host ?? '').replaceAll('{name}', node ?? '');
    const { port = sshPort, hostKey } = one;
    const address = one.local ? 'local' : addressOf({ host, port });
    const via = hopOf(settings, one.via);
    // The head node may be one of the compute nodes behind it.
    const hop = via && addressOf(via) !== address ? { via } : {};
    const reach = one.local ? {} : { reach: { host, port, hostKey, ...hop } };
    const known = found.get(address) ?? { address, ...reach, roles: new Set<Role>(), nodes: [] };
    known.roles.add(role);
    if (known.reach) known.reach.hostKey ??= hostKey;
    if (one.accounts) known.accounts ??= one.accounts;
    if (node !== undefined) known.nodes.push(node);
    found.set(address, known);
  };
  const { controller, compute, homes } = settings;
  const accounting = hasHost(settings.accounting) ? settings.accounting : controller;
  add(controller, 'controller');
  add(accounting, 'accounting');
  for (const node of loginNodesOf(settings, usernames))
    add({ ...node, local: node.address === 'local' }, 'login');
  if (homes) add(homes, 'homes');
  if (compute) for (const node of nodes) add(compute, 'compute', node);
  return [...found.values()];
}
