/** The servers that share one database, and faults that operators must mend: dead servers, differing clocks and settings. */
import type { Problem } from './installation-state.ts';

export interface Server {
  id: string;
  name: string;
  version: string;
  startedAt: string;
  /** By the database's clock. */
  seenAt: string;
  /** Whether its last heartbeat is recent enough that no other server takes over its work. */
  isLive: boolean;
  /** Whether it is the leader, which does the work that one server does for all. */
  leads: boolean;
  /** The least ms by which the database's clock is ahead of the server's; undefined if the server did not report it. */
  clockDiffersMs: number | undefined;
  /** The settings that must be the same on all servers, by name; empty if the server did not report them. */
  settings: ServerSettings;
}

export type ServerSettings = Readonly<Record<string, string>>;

/** A server without a heartbeat for this long is dead, and another takes over its exclusive work. */
export const serverLifeMs = 15_000;
export const heartbeatMs = 5_000;
/** A server that could not write its heartbeat for this long stops its exclusive work, before another takes it over. */
export const giveUpMs = 10_000;
/** Dead servers are listed for this long and up to this number: a server that crashes at each start is a new one each time. */
export const rememberedMs = 86_400_000;
export const mostRemembered = 20;
/** A clock difference that an operator has to mend. */
export const clockLimitMs = 2_000;

/**
 * A server whose clock is off by more is not ready. Tokens tolerate 60 s between any two clocks, so each server may
 * be off by half of that.
 */
const clockToleranceMs = 30_000;

/** The refusal of a simulated cluster with several servers: the cluster lives in the data directory of one. */
export function simulatedRefusal(clusters: readonly string[], others: readonly string[]): string {
  return `Simulated clusters (${clusters.slice(0, 3).join(', ')}${clusters.length > 3 ? ', …' : ''}) live in the data directory of one server, and ${others.join(', ')} ${others.length === 1 ? 'serves' : 'serve'} from this database as well. Release them first (\`andromeda admin cluster release\`), or stop the other servers.`;
}

export function problemsOfServers(servers: readonly Server[]): Problem[] {
  const live = servers.filter(({ isLive }) => isLive);
  return [
    ...problemsOfGone(servers, live),
    ...live.flatMap(problemsOfClock),
    ...problemsOfVersions(live),
    ...problemsOfSettings(live),
  ];
}

/** A dead server is no problem if a live one has the same name and so has replaced it. */
function problemsOfGone(servers: readonly Server[], live: readonly Server[]): Problem[] {
  const present = new Set(live.map(({ name }) => name));
  const latest = new Map(
    servers
      .filter(({ isLive, name }) => !isLive && !present.has(name))
      .toSorted((a, b) => a.seenAt.localeCompare(b.seenAt))
      .map((server) => [server.name, server]),
  );
  return [...latest.values()].map(({ name, seenAt }) => ({
    area: 'server',
    about: name,
    urgency: 'now',
    since: seenAt,
    message: `It ended without a word, or cannot reach the database: it was last seen at ${seenAt}.`,
    action: 'Start it again. One that is not to come back is forgotten a day after it was last seen.',
  }));
}

function problemsOfClock({ name, clockDiffersMs = 0 }: Server): Problem[] {
  if (Math.abs(clockDiffersMs) < clockLimitMs) return [];
  return [
    {
      area: 'server',
      about: name,
      urgency: 'now',
      message: `Its clock is ${clockText(clockDiffersMs)}.`,
      action:
        'See on both hosts that the time is kept (timedatectl, chronyc tracking). What has an end, such as sign-ins, ends on it too early or too late meanwhile.',
    },
  ];
}

/**
 * Why a server with a wrong clock does not serve; else undefined. The database and each live server vote: more than half must agree
 * with this clock; the database breaks a tie. `differsMs`: how far the database's clock is ahead; `others`: the same of the others.
 */
export function clockFault(differsMs: number, others: readonly (number | undefined)[]): string | undefined {
  const votes = [0, differsMs, ...others.filter((one) => one !== undefined)];
  const isSame = (one: number) => Math.abs(one - differsMs) <= clockToleranceMs;
  const lead = 2 * votes.filter(isSame).length - votes.length;
  if (lead > 0 || (lead === 0 && isSame(0))) return undefined;
  const advice = 'See on all hosts that the time is kept (timedatectl, chronyc tracking).';
  if (isSame(0)) return `Most other servers have another time than this one and the database. ${advice}`;
  return `The clock of this server is ${clockText(differsMs)}. ${advice}`;
}

/** Describes a server's clock; `differsMs`: how far the database's is ahead. */
export function clockText(differsMs: number): string {
  const seconds = (Math.abs(differsMs) / 1000).toFixed(1);
  return `${seconds} seconds ${differsMs > 0 ? 'behind' : 'ahead of'} that of the database`;
}

function problemsOfVersions(live: readonly Server[]): Problem[] {
  const named = byValue(live, ({ version }) => version);
  if (named.size < 2) return [];
  return [
    {
      area: 'server',
      about: 'versions',
      urgency: 'soon',
      message: `The servers are of different versions: ${valuesText(named)}.`,
      action:
        'Finish the upgrade, one server after the other: two versions side by side are for that time only.',
    },
  ];
}

function problemsOfSettings(live: readonly Server[]): Problem[] {
  const names = new Set(live.flatMap(({ settings }) => Object.keys(settings)));
  return [...names].flatMap((setting): Problem[] => {
    // Servers of another version may report fewer settings.
    const saying = live.filter(({ settings }) => settings[setting] !== undefined);
    const named = byValue(saying, ({ settings }) => settings[setting] || 'left out');
    if (named.size < 2) return [];
    return [
      {
        area: 'server',
        about: setting,
        urgency: 'now',
        message: `It differs between the servers: ${valuesText(named)}.`,
        action: 'Make it the same in the configuration of all of them, and reload those that were changed.',
      },
    ];
  });
}

export function differenceOf(own: Server['settings'], { name, settings }: Server): string | undefined {
  const different = Object.keys(own).filter(
    (setting) => settings[setting] !== undefined && settings[setting] !== own[setting],
  );
  if (different.length === 0) return undefined;
  const text = (value: string | undefined) => value || 'left out';
  const all = different.map((one) => `${one} (here ${text(own[one])}, there ${text(settings[one])})`);
  return `The configuration of ${name} differs from this server's in what has to be the same on all: ${all.join('; ')}.`;
}

function byValue(servers: readonly Server[], said: (server: Server) => string): Map<string, string[]> {
  const inOrder = servers.toSorted((a, b) => a.name.localeCompare(b.name));
  const groups = [...Map.groupBy(inOrder, said)];
  return new Map(groups.map(([value, some]) => [value, some.map(({ name }) => name)]));
}

function valuesText(named: ReadonlyMap<string, readonly string[]>): string {
  return [...named].map(([value, names]) => `${value} on ${names.join(', ')}`).join('; ');
}

/**
 * The ms by which another clock, read between two times of this one, is at least ahead, negative if it is behind;
 * independent of the answer's delay.
 */
export function clockAhead(there: number, before: number, after: number): number {
  return Math.round(there > after ? there - after : Math.min(0, there - before));
}
