/** Tables of what went through the gateway, and of revoked keys on their way out: a part of `schema.ts`. */

/** A session that has no closing entry in the audit trail yet. */
export interface OpenSessionTable {
  id: string;
  /** The audit entry of its opening, as JSON. */
  entry: string;
  /** Whose it is; null where a version before wrote it. */
  server_id: string | null;
  /** Its server is to close it, with this word to the person. */
  closing: string | null;
  /** Its server was gone for so long that another closed it in the trail: the number of that entry, and when. */
  presumed_seq: number | null;
  presumed_at: string | null;
}

/** A session that is over. What is not known of it is null, as where the service was cut off. */
export interface PastSessionTable {
  /** Of the entry of its end in the audit trail. */
  seq: number;
  id: string;
  cluster_id: string;
  organization_id: string | null;
  user_id: string;
  username: string;
  key_id: string;
  fingerprint: string;
  remote_address: string;
  login_node: string;
  opened_at: string;
  closed_at: string;
  end_reason: string;
  bytes_up: number | null;
  bytes_down: number | null;
  shells: number | null;
  file_transfers: number | null;
  command_count: number | null;
  /** The first of them, as JSON. */
  commands: string;
  forward_count: number | null;
  /** JSON; "host:port", each once. */
  forwards: string;
}

/** How much went on in an interval of so many seconds that begins at `at`. */
export interface ActivityTable {
  step: number;
  at: string;
  logins: number;
  refused: number;
  /** Seconds for which a side of a cluster was looked after, of all sides together. */
  watched: number;
  /** Of these, those in which a change was not in force yet. */
  behind: number;
  /** Of these, those in which the last pass had failed. */
  failing: number;
}

/** A revoked key that a cluster has or had: the list version without it, and when the cluster first said that it has that. */
export interface KeyDropTable {
  cluster_id: string;
  key_id: string;
  user_id: string;
  version: number;
  dropped_at: string | null;
}

export interface SessionSchema {
  open_sessions: OpenSessionTable;
  ssh_sessions: PastSessionTable;
  activity: ActivityTable;
  key_drops: KeyDropTable;
}
