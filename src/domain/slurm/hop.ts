/**
 * Hosts that are reached through another host (`via` in the lab file), as with `ssh -J`: connections go to the hop, and
 * from there on as a TCP stream within. Every host on the way is pinned to its own key.
 */

/** A host that connections go through; its own `via` comes before it. */
export interface Hop {
  host: string;
  port: number;
  hostKey: string;
  via?: Hop;
}

/** `controller`, the name of a login node, or another host. */
export type Via = string | { host: string; port?: number; hostKey: string };

interface ViaHost {
  host?: string;
  port?: number;
  hostKey?: string;
  local?: boolean;
  via?: Via;
}

interface ViaHosts {
  login: readonly (ViaHost & { name: string })[];
  controller: ViaHost;
}

export const sshPort = 22;

export function addressOf({ host, port }: Pick<Hop, 'host' | 'port'>): string {
  return `${host}:${port}`;
}

/** The hop before a host with this `via`; undefined: none. A hop that is the service's own machine is none. */
export function hopOf(hosts: ViaHosts, via: Via | undefined): Hop | undefined {
  const { host, port = sshPort, hostKey, local, via: before } = named(hosts, via) ?? {};
  if (local || host === undefined || hostKey === undefined) return undefined;
  const first = hopOf(hosts, before);
  return { host, port, hostKey, ...(first && { via: first }) };
}

/** Why the `via` of a host leads nowhere, as the end of a sentence that begins with the host; undefined: it is good. */
export function faultOfVia(hosts: ViaHosts, one: ViaHost): string | undefined {
  if (one.local && one.via !== undefined) return 'is the machine of the service, so it cannot have a via.';
  const passed = new Set([identityOf(one)]);
  for (let { via } = one; via !== undefined; ) {
    const hop: ViaHost | undefined = named(hosts, via);
    if (!hop) return `has the via ${via}, which is neither controller nor the name of a login node.`;
    if (hop.host?.includes('{')) return `has a via whose host, ${hop.host}, is several hosts.`;
    if (passed.has(identityOf(hop))) return `has a via that leads back to ${hop.host ?? 'itself'}.`;
    passed.add(identityOf(hop));
    via = hop.via;
  }
  return undefined;
}

function named({ login, controller }: ViaHosts, via: Via | undefined): ViaHost | undefined {
  if (typeof via !== 'string') return via;
  return via === 'controller' ? controller : login.find(({ name }) => name === via);
}

/** The same for all entries of one host. */
export function identityOf({ host = '', port = sshPort, local }: ViaHost): string {
  return local ? 'local' : addressOf({ host, port });
}
