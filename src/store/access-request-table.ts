/** What a member asks for: permissions, for how long, and on account of which cluster. */
export interface AccessRequestTable {
  id: string;
  org_id: string;
  user_id: string;
  cluster_id: string | null;
  /** JSON, in order. */
  permissions: string;
  /** From the approval on; null: without an end. */
  hours: number | null;
  reason: string;
  state: 'open' | 'approved' | 'declined' | 'withdrawn';
  created_at: string;
  decided_at: string | null;
  decided_by_user_id: string | null;
  decision_reason: string | null;
  /** Of what was approved; null: it has no end. */
  expires_at: string | null;
}
