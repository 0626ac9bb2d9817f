/**
 * The SSH gateway in processes of its own, which keep running while the service is away.
 *
 * Owns: the number of gateway processes, the messages between them and the service, and the service's copy of their
 * sessions. Must not: know the store, or decide who may log in; both are passed in. src/gateway/ssh accepts and
 * relays connections, the same in this process and in one of its own.
 *
 * The flow: the service listens on a socket in its run directory, and starts a process (launch.ts) or finds one from
 * before its start (run-directory.ts). The process connects (role.ts, link.ts) and says hello; the welcome has all
 * that it needs to serve. Then it asks and reports, one JSON object a line (messages.ts).
 */
import { isDeepStrictEqual } from 'node:util';
import { startGateway } from '../ssh/index.ts';
import type { Gateways, GatewaysOptions } from './gateways.ts';
import { GatewayProcesses } from './processes.ts';

/** Timeout of a recheck: how long its caller waits at most. */
const recheckMs = 1_000;

/** Finds the processes that live from before; starts the first where there is none. */
export async function openGateways(options: GatewaysOptions): Promise<Gateways> {
  if (options.processes === 0) return inThisProcess(options);
  const processes = new GatewayProcesses(options);
  await processes.open();
  return processes;
}

function inThisProcess({ settings: given, authorize, record, log }: GatewaysOptions): Gateways {
  let settings = given;
  let gateway: Awaited<ReturnType<typeof startGateway>> | undefined;
  const stop = async () => gateway?.stop();
  return {
    held: new Set(),
    async start() {
      gateway = await startGateway({ ...settings, authorize, record: (event) => void record(event), log });
    },
    get fault() {
      return gateway ? undefined : 'it is starting';
    },
    unreached: [],
    useKeys(keys) {
      const before = settings;
      settings = { ...before, ...keys };
      if (!isDeepStrictEqual(settings, before)) gateway?.configure(settings);
    },
    recheck: async (filter) => {
      const enough = new Promise<void>((resolve) => void setTimeout(resolve, recheckMs).unref());
      await Promise.race([gateway?.recheck(filter), enough]);
    },
    close: (filter, reason, text) => gateway?.close(filter, reason, text) ?? 0,
    sessions: async () => gateway?.sessions() ?? [],
    count: () => gateway?.sessions().length ?? 0,
    stop,
    leave: stop,
    endLeft: stop,
  };
}
