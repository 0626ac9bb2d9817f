/** Organizations: what every folder works with; their rules are in `membership.ts`, and the store makes them of rows. */

export interface Organization {
  id: string;
  slug: string;
  displayName: string;
  lifecycleState: 'active' | 'retired';
  createdByUserId: string;
  createdAt: string;
  updatedAt: string;
}
