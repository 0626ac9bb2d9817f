/** What commits announce: hints that something may have to be done, here and on the other servers of the database. */

/**
 * Whose state a committed write changed; `observedClusterId` when a cluster reported something new, or what is sold or set
 * aside there changed, `browsersOfUserId` when the person's sign-ins to the console changed and nothing else,
 * `sessionsOfUserId` when an SSH session of theirs opened or ended, `requestsOfUserId` when what they ask for changed.
 * `ofService` when what the service says of itself changed, beside the database, `closingSessionId` when the server that has an
 * SSH session is to close it.
 * `everything`: this server may have missed what others changed, so that all that it keeps or watches counts as changed.
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
  | { everything: true };

/** Whether this server wrote it, or another one of the same database. */
export interface ChangeOrigin {
  from: 'here' | 'elsewhere';
}

export type ChangeListener = (changes: readonly Change[], origin: ChangeOrigin) => void;
