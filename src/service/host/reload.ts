/**
 * `systemctl reload`: the service takes up the settings and certificates on disk. Before anything stops, all checks
 * of `check` run, and new listeners are opened.
 */
import { rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import type { Endpoint } from '../../api/http/listen.ts';
import type { Listeners } from '../../api/http/listeners.ts';
import { timelineNote } from '../../store/data-dir/first-start.ts';
import { inspectShared } from '../../store/data-dir/inspect.ts';
import { viewPostgres } from '../../store/engine/engine.ts';
import type { Store } from '../../store/engine/index.ts';
import { findServer } from '../../store/servers/servers.ts';
import { type Address, type Config, readConfig } from '../config/index.ts';
import { listHttpListeners } from '../config/listeners.ts';
import { reloadSocket } from './ask-service.ts';
import { checkConfig } from './checks/check.ts';
import { wrong } from './checks/findings.ts';
import { refusal } from './installation.ts';
import { checkPorts } from './ports.ts';

const mostFaults = 5;

export interface Present {
  config: Config;
  server: Store['server'];
  listeners: Listeners;
}

/** The configuration to continue with. Throws a sentence where it is unusable, and then nothing has changed. */
export async function nextConfig(
  file: string,
  { config: present, server, listeners }: Present,
): Promise<Config> {
  const config = readConfig(file);
  if (config.dataDir !== present.dataDir)
    throw refusal(
      `dataDir is ${config.dataDir} now, and the service has ${present.dataDir}. Another one takes a restart.`,
    );
  await requireDatabase(config, present, server);
  const { gateway } = present;
  const isHeld = ({ host, port }: Address) =>
    listeners.has({ host, port }) || (host === gateway.listen.host && port === gateway.listen.port);
  const faults: string[] = [];
  const ports = await checkPorts(config, { isHeld });
  for await (const { verdict, text } of checkConfig(file, config, ports, { away: wrong }))
    if (verdict === 'wrong') faults.push(text);
  if (faults.length > 0) throw refusal(faults.slice(0, mostFaults).join(' '));
  await listeners.add(httpEndpoints(config));
  return config;
}

function httpEndpoints(config: Config): Endpoint[] {
  const endpoints = listHttpListeners(config).map(([name, { listen, tls }]) => ({
    name: `${name} listener`,
    ...listen,
    isTls: tls !== undefined,
  }));
  const challenges = config.acme?.listen;
  return challenges ? [...endpoints, { name: 'acme listener', ...challenges, isTls: false }] : endpoints;
}

/** Throws a sentence where the database is away, or is another than before. `checkConfig` checks its content. */
async function requireDatabase(
  { database, dataDir }: Config,
  present: Config,
  server: Store['server'],
): Promise<void> {
  if (database === undefined) {
    if (present.database === undefined) return;
    throw refusal('The settings name no database any more (`database`), and this server has a shared one.');
  }
  const view = await viewPostgres(database, timelineNote(dataDir, false));
  try {
    const { state, missing } = await inspectShared(view);
    const isKnown = state !== 'new' && missing.length === 0 && (await findServer(view.reader, server.id));
    if (!isKnown && missing.length === 0)
      throw refusal(
        `${view.name} is another database than the one that this server has: it does not know this server. If it is to have that one, stop it and start it again.`,
      );
  } finally {
    await view.close();
  }
}

/** Clients that wait for the outcome of a reload, at a socket in the data directory that only root and the service's account can open. */
export interface Askers {
  /** Takes the clients so far. Returns a function that answers them, once: with the reason of a refusal, or undefined after a reload. */
  take(): (refusal: string | undefined) => void;
}

/** Calls `ask` for each new client. `onFault`: gets the reason when the socket cannot be opened. */
export function listenForAskers(dataDir: string, ask: () => void, onFault: (reason: string) => void): Askers {
  let waiting: Socket[] = [];
  const server = createServer((socket) => {
    socket.on('error', () => {});
    waiting.push(socket);
    ask();
  });
  server.on('error', ({ message }) => onFault(message));
  const path = reloadSocket(dataDir);
  rmSync(path, { force: true });
  const mask = process.umask(0o177);
  server.listen(path);
  process.umask(mask);
  server.unref();
  return {
    take() {
      const taken = waiting;
      waiting = [];
      return (refusal) => {
        for (const socket of taken.splice(0)) socket.end(`${JSON.stringify({ refusal })}\n`);
      };
    },
  };
}
