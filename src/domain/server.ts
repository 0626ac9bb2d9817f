/** The servers that share one database. */

export interface Server {
  id: string;
  name: string;
  /** Of its program. */
  version: string;
  startedAt: string;
  /** By the database's clock. */
  seenAt: string;
  /** Whether it was seen so lately that what it does is left to it. */
  isLive: boolean;
  /** How much it does of what one server at a time does. */
  leases: number;
  /** By how many ms the database's clock is ahead of its own, at least; undefined where it does not say so. */
  clockDiffersMs: number | undefined;
  /** What has to be the same on all of them, by name; empty where it does not say so. */
  settings: ServerSettings;
}

export type ServerSettings = Readonly<Record<string, string>>;

/** A server that was not seen for this long is gone: what it alone did, another does. */
export const serverLifeMs = 15_000;
/** How often a server says that it is there. */
export const heartbeatMs = 5_000;
/** A server that could not say so for this long stops what it alone does, before others begin with it. */
export const giveUpMs = 10_000;
/** So long one that is gone is still named, and no more of them: one that ends at each start is another each time. */
export const rememberedMs = 86_400_000;
export const mostRemembered = 20;
/** Clocks that differ by more than this are for an operator to mend. */
export const clockLimitMs = 2_000;

/**
 * A server whose clock is off by more is not ready. Tokens tolerate 60 s between any two clocks, so each server may be off by
 * half of that.
 */
export const clockToleranceMs = 30_000;

/** What keeps several servers from having a simulated cluster: it lives in the data directory of one. */
export function simulatedRefusal(clusters: readonly string[], others: readonly string[]): string {
  return `Simulated clusters (${clusters.slice(0, 3).join(', ')}${clusters.length > 3 ? ', …' : ''}) live in the data directory of one server, and ${others.join(', ')} ${others.length === 1 ? 'serves' : 'serve'} from this database as well. Release them first (\`andromeda admin cluster release\`), or stop the other servers.`;
}
