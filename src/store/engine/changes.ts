/** Changes that commits announce: hints that something may have to be done, on any server of the database. */

/** A change by a committed write; `commandId`: the command that made it, for the log. */
export type Change = AnnouncedChange & { commandId?: string };

type AnnouncedChange =
  /** A person's state; `permissionEnd`: when a permission that was just granted to them ends by itself, RFC 3339. */
  | { kind: 'person'; userId: string; permissionEnd?: string }
  | { kind: 'organization'; organizationId: string }
  /** The desired state of a cluster. */
  | { kind: 'cluster'; clusterId: string }
  /** A cluster reported something new, or its storage purchases or reserved nodes changed. */
  | { kind: 'report'; clusterId: string }
  /** The person's sign-ins to the console, and nothing else. */
  | { kind: 'browsers'; userId: string }
  /** An SSH session of the person's opened or ended. */
  | { kind: 'sessions'; userId: string }
  /** The person's access requests in an organization. */
  | { kind: 'requests'; userId: string; organizationId: string }
  /** The state that the service reports of itself, apart from the database. */
  | { kind: 'service' }
  /** The server that has this SSH session is to close it. */
  | { kind: 'closing'; sessionId: string }
  /**
   * This server may have missed changes of others, so all that it caches or watches counts as changed; `wentBack`: the database has
   * lost commits, so that versions and generations come again.
   */
  | { kind: 'everything'; wentBack?: true };

type Kind = Change['kind'];

export const hears = {
  /** Tokens that the APIs have verified. */
  tokens: ['person', 'everything'],
  /** SSH sessions that are checked again. */
  gateway: ['person', 'organization', 'cluster', 'report', 'everything'],
  syncLoop: ['person', 'organization', 'cluster', 'everything'],
  /** The console's streams, which make pages read again. */
  consoleTopics: [
    'person',
    'organization',
    'cluster',
    'report',
    'browsers',
    'requests',
    'service',
    'everything',
  ],
  consoleSessions: ['sessions', 'everything'],
  permissionEnds: ['person', 'everything'],
  /** SSH sessions that a server closes for another. */
  closings: ['closing', 'everything'],
  serviceKeys: ['everything'],
  leader: ['everything'],
  caches: ['everything'],
} as const satisfies Record<string, readonly Kind[]>;

export type Heard<Listener extends keyof typeof hears> = Extract<
  Change,
  { kind: (typeof hears)[Listener][number] }
>;

/** Whether this server made the change, or another one of the same database. */
export interface ChangeOrigin {
  from: 'here' | 'elsewhere';
}

export type ChangeListener<K extends Kind = Kind> = (
  changes: readonly Extract<Change, { kind: K }>[],
  origin: ChangeOrigin,
) => void;

type FieldType = 'string' | 'string?' | 'true?';

/** The fields of each kind of change between servers, besides kind and command; `?`: it may be missing. */
const fields: Record<Kind, Readonly<Record<string, FieldType>>> = {
  person: { userId: 'string', permissionEnd: 'string?' },
  organization: { organizationId: 'string' },
  cluster: { clusterId: 'string' },
  report: { clusterId: 'string' },
  browsers: { userId: 'string' },
  sessions: { userId: 'string' },
  requests: { userId: 'string', organizationId: 'string' },
  service: {},
  closing: { sessionId: 'string' },
  everything: { wentBack: 'true?' },
};

/**
 * Parses changes that another server announced, which may be of another version. An unknown kind concerns nothing that
 * this version keeps, and is left out; a change that cannot be parsed counts as everything.
 */
export function readChanges(received: unknown): Change[] {
  if (!Array.isArray(received)) return [{ kind: 'everything' }];
  return received.flatMap((one) => readChange(one));
}

function readChange(received: unknown): Change[] {
  const everything: Change[] = [{ kind: 'everything' }];
  if (typeof received !== 'object' || received === null) return everything;
  const values = new Map<string, unknown>(Object.entries(received));
  const kind = values.get('kind');
  if (typeof kind !== 'string') return everything;
  if (!Object.hasOwn(fields, kind)) return [];
  const change: Record<string, unknown> = { kind };
  for (const [name, type] of Object.entries({ ...fields[kind as Kind], commandId: 'string?' })) {
    const value = values.get(name);
    if (value === undefined && type.endsWith('?')) continue;
    if (type === 'true?' ? value !== true : typeof value !== 'string') return everything;
    change[name] = value;
  }
  return [change as Change];
}
