/** Organizations. */

export interface Organization {
  id: string;
  slug: string;
  displayName: string;
  lifecycleState: 'active' | 'retired';
  createdByUserId: string;
  createdAt: string;
  updatedAt: string;
}
