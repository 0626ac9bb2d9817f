/** Groups at the issuer, what rules gave for them, and what members were. A part of `schema.ts`. */

/** The groups that the issuer said last of a person, and what was wrong with what it said after that. */
interface PersonGroupsTable {
  user_id: string;
  issuer: string;
  claim: string;
  /** JSON, in order; null: none were ever said. */
  groups: string | null;
  /** When the token was issued that said them, or had the fault. */
  token_at: string;
  /** Null: what the newest token said was taken over. */
  fault: string | null;
  fault_at: string | null;
}

/** A client whose tokens, or userinfo, have had the claim. */
interface GroupClientTable {
  issuer: string;
  claim: string;
  client: string;
}

/** A membership that rules give, or give something of. What is in force, both ways together, is in `memberships`. */
interface RuleMembershipTable {
  org_id: string;
  user_id: string;
  role: 'owner' | 'admin' | 'member';
  /** JSON, in order. */
  permissions: string;
  /** JSON: for which groups. */
  groups: string;
  /** JSON: what people gave; null: they gave nothing. */
  by_hand: string | null;
  /** Since when rules keep the last owner whom they would take away. */
  kept_since: string | null;
}

/** What a person was in an organization, until the next change. */
interface MemberHistoryTable {
  org_id: string;
  user_id: string;
  since: string;
  /** Null: it is so still. */
  until: string | null;
  role: 'owner' | 'admin' | 'member';
  username: string | null;
  member_since: string;
  /** JSON: keys with their ends, in order. */
  permissions: string;
}

export interface GroupSchema {
  member_history: MemberHistoryTable;
  person_groups: PersonGroupsTable;
  group_clients: GroupClientTable;
  rule_memberships: RuleMembershipTable;
}
