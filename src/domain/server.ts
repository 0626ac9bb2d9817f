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
}

/** A server that was not seen for this long is gone: what it alone did, another does. */
export const serverLifeMs = 15_000;
/** How often a server says that it is there. */
export const heartbeatMs = 5_000;
/** A server that could not say so for this long stops what it alone does, before others begin with it. */
export const giveUpMs = 10_000;
/** So long one that is gone is still named. */
export const rememberedMs = 86_400_000;

/** What keeps several servers from having a simulated cluster: it lives in the data directory of one. */
export function simulatedRefusal(clusters: readonly string[], others: readonly string[]): string {
  return `Simulated clusters (${clusters.slice(0, 3).join(', ')}${clusters.length > 3 ? ', …' : ''}) live in the data directory of one server, and ${others.join(', ')} ${others.length === 1 ? 'serves' : 'serve'} from this database as well. Release them first (\`andromeda admin cluster release\`), or stop the other servers.`;
}
