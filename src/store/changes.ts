/** What commits announce: hints that something may have to be done, here and on the other servers of the database. */

/**
 * Whose state a committed write changed; `observedClusterId` when a cluster reported something new, or what is sold or set
 * aside there changed, `browsersOfUserId` when the person's sign-ins to the console changed and nothing else,
 * `sessionsOfUserId` when an SSH session of theirs opened or ended, `requestsOfUserId` when what they ask for changed.
 * `ofService` when what the service says of itself changed, beside the database, `closingSessionId` when the server that has an
 * SSH session is to close it.
 * `everything`: this server may have missed what others changed, so that all that it keeps or watches counts as changed;
 * `wentBack` with it where the database has lost commits, so that versions and generations come again.
 */
export type Change =
  | { userId: string }
  | { organizationId: string }
  | { clusterId: string }
  | { observedClusterId: string }
  | { browsersOfUserId: string }
  | { sessionsOfUserId: string }
  | { requestsOfUserId: string; inOrganizationId: string }
  | { ofService: true }
  | { closingSessionId: string }
  | { everything: true; wentBack?: true };

/** Whether this server wrote it, or another one of the same database. */
export interface ChangeOrigin {
  from: 'here' | 'elsewhere';
}

export type ChangeListener = (changes: readonly Change[], origin: ChangeOrigin) => void;

type Field = Change extends infer One ? (One extends unknown ? keyof One : never) : never;

const fields: Record<Field, 'string' | 'boolean'> = {
  userId: 'string',
  organizationId: 'string',
  clusterId: 'string',
  observedClusterId: 'string',
  browsersOfUserId: 'string',
  sessionsOfUserId: 'string',
  requestsOfUserId: 'string',
  inOrganizationId: 'string',
  ofService: 'boolean',
  closingSessionId: 'string',
  everything: 'boolean',
  wentBack: 'boolean',
};

/**
 * Changes as another server announced them, which may be of another version. A kind that is not known here is about nothing
 * that is kept here, and left out; what cannot be read counts as everything.
 */
export function readChanges(received: unknown): Change[] {
  if (!Array.isArray(received)) return [{ everything: true }];
  return received.flatMap((one) => readChange(one));
}

function readChange(received: unknown): Change[] {
  const everything: Change[] = [{ everything: true }];
  if (typeof received !== 'object' || received === null || Array.isArray(received)) return everything;
  const known = Object.entries(received).filter(([field]) => Object.hasOwn(fields, field));
  if (known.some(([field, value]) => typeof value !== fields[field as Field])) return everything;
  const change = Object.fromEntries(known);
  if ('requestsOfUserId' in change !== 'inOrganizationId' in change) return everything;
  return known.length === 0 ? [] : [change as Change];
}
