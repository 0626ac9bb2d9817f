/** A part of the composition root: the SSH gateway with what it asks the store, and what it leaves in the audit trail. */
import { listenError } from '../../api/http/listen.ts';
import type { Gateways } from '../../gateway/process/gateways.ts';
import { openGateways } from '../../gateway/process/index.ts';
import type { Authorize } from '../../gateway/ssh/decision.ts';
import { defaultLimits } from '../../gateway/ssh/limits.ts';
import { askKey } from '../../gateway/ssh/login/ask-key.ts';
import type { SshKeyFile } from '../../lib/ssh/key-file.ts';
import { heldKeys } from '../../lib/ssh/key-set.ts';
import { closeLostSessions } from '../../store/audit/open-sessions.ts';
import { listLoginNodes } from '../../store/clusters/login-nodes.ts';
import type { Reader, Store } from '../../store/engine/index.ts';
import { listServers } from '../../store/servers/servers.ts';
import type { Config } from '../config/index.ts';
import { createAuthorize } from './authorize-login.ts';
import type { Parts } from './parts.ts';
import type { Peers } from './peers/peers.ts';
import { takeOverFrom } from './peers/sessions.ts';
import type { SessionRecords } from './session-records.ts';

type GatewayDeps = Pick<Parts, 'store' | 'hostKey' | 'log'> & {
  peers: Pick<Peers, 'forOthers'>;
  clientKey: SshKeyFile;
  records: SessionRecords;
  /** As the store says, when left out. */
  authorize?: Authorize;
  /** Of the program, where it is not this one's. */
  build?: string | undefined;
};

/** Finds the gateway that still runs from before, or begins to start one. It takes no logins before `startGateway`. */
export function openGateway(config: Config, deps: GatewayDeps): Promise<Gateways> {
  const { store, peers, hostKey, clientKey, records, log } = deps;
  const { listen, limits, processes, account, securityKeys, proxyProtocol } = config.gateway;
  const graceMs = limits.confirmGraceMs ?? defaultLimits.confirmGraceMs;
  return openGateways({
    dataDir: config.dataDir,
    processes,
    account,
    settings: {
      listen,
      hostKey: hostKey.privateKey,
      otherHostKeys: heldKeys(hostKey)
        .slice(1)
        .map(({ privateKey }) => privateKey),
      clientKey: clientKey.privateKey,
      securityKeys,
      limits,
      trustedProxies: config.trustedProxies,
      proxyProtocol: proxyProtocol ?? 'optional',
      hasOthers: peers.forOthers(() => true) ?? false,
      debug: config.log.level === 'debug',
    },
    record: records.record,
    authorize: deps.authorize ?? createAuthorize({ store, graceMs }),
    log,
    build: deps.build,
  });
}

/**
 * Closes the records of sessions that no process has any more, then lets the gateway serve. Throws
 * `service_unavailable` with a sentence when its address cannot be had.
 */
export async function startGateway(
  gateway: Gateways,
  {
    config,
    store,
    peers,
    log,
    now,
  }: Pick<Parts, 'config' | 'now'> & Pick<GatewayDeps, 'store' | 'peers' | 'log'>,
): Promise<void> {
  const { listen } = config.gateway;
  const lost = await closeLostSessions(store, new Date(now()).toISOString(), {
    spared: gateway.held,
    before: await peers.forOthers(() => namesBefore(config, store)),
  });
  if (lost > 0) log.info('gateway.sessions.lost', { sessions: lost });
  await gateway.start().catch((error: NodeJS.ErrnoException) => {
    throw listenError(error, { name: 'SSH gateway', ...listen });
  });
}

/** What this server was called before, where others have sessions that are not its own. */
async function namesBefore({ dataDir }: Config, store: Store): Promise<string[]> {
  const live = new Set((await listServers(store)).filter((one) => one.isLive).map(({ id }) => id));
  const isLive = (id: string) => live.has(id);
  const before = takeOverFrom(dataDir, { server: store.server.id, isLive });
  return before === undefined ? [] : [before];
}

/** Where everyone has a login node of their own, there are thousands. */
const atOnce = 16;

/** Sentences about those that would not, or that cannot be asked. */
export async function refusalsOfLoginNodes(db: Reader, publicKey: string): Promise<string[]> {
  const nodes = await listLoginNodes(db);
  const refusals: string[] = [];
  const rest = nodes.values();
  const worker = async () => {
    for (const { cluster, node, username } of rest) {
      const why = !node.up
        ? 'it is down'
        : username === undefined
          ? 'nobody has an account there who could be asked about'
          : await askKey({ loginNode: node, username, publicKey });
      if (why !== undefined) refusals.push(`${cluster}, ${node.name} (${node.host}:${node.port}): ${why}.`);
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, nodes.length) }, worker));
  return refusals.sort();
}
