/** `andromeda admin purchase`: storage that organizations want to buy. */

import { printer } from '../answer.ts';
import type { Business } from '../net/operations.ts';
import type { Noun } from '../verb.ts';
import { changesOne, lists } from './common-verbs.ts';

type Purchase = Business['StoragePurchase'];

const purchases = printer<Purchase>(
  {
    STATE: (row) => row.state,
    TYPE: (row) => row.storage_type,
    BYTES: (row) => row.bytes,
    CLUSTER: (row) => row.target_cluster_id,
    ORGANIZATION: (row) => row.organization_id,
    CREATED: (row) => row.created_at,
    ID: (row) => row.id,
  },
  'There are no purchases.',
);

export const purchase: Noun = {
  name: 'purchase',
  summary: 'storage that organizations want to buy',
  verbs: [
    lists(
      'purchase',
      'every storage purchase, decided or not',
      purchases,
      (api) => api.get('/operator/purchases'),
      (json) => json.purchases,
    ),
    changesOne(
      'purchase',
      'accept',
      'accept a storage purchase: it counts from now on',
      purchases,
      (api, id) => api.post('/operator/purchases/{purchaseID}/accept', { path: { purchaseID: id } }),
    ),
    changesOne('purchase', 'decline', 'decline a storage purchase', purchases, (api, id) =>
      api.post('/operator/purchases/{purchaseID}/decline', { path: { purchaseID: id } }),
    ),
  ],
};
