/** `andromeda admin reservation`: nodes of a cluster set aside for its organization. */

import { printer } from '../answer.ts';
import { usage } from '../exit.ts';
import type { Business } from '../net/operations.ts';
import { parseTime } from '../time.ts';
import { type Noun, optional, required, writes } from '../verb.ts';
import { findCluster } from './cluster.ts';
import { changesOne, lists } from './common-verbs.ts';

type Reservation = Business['Reservation'];

const reservations = printer<Reservation>(
  {
    STATE: (row) => row.state,
    NODES: (row) => row.node_count,
    CLUSTER: (row) => row.cluster_id,
    ORGANIZATION: (row) => row.organization_id,
    CREATED: (row) => row.created_at,
    ENDS: (row) => row.ended_at ?? row.ends_at,
    ID: (row) => row.id,
  },
  'There are no reservations.',
);

export const reservation: Noun = {
  name: 'reservation',
  summary: 'nodes of a cluster set aside for its organization',
  verbs: [
    lists(
      'reservation',
      'every reservation, those that ended too',
      reservations,
      (api) => api.get('/operator/reservations'),
      (json) => json.reservations,
    ),
    writes<{ cluster: string; nodes: string; ends?: string }>({
      usage: 'add',
      summary: "set nodes of a cluster aside; they become the cluster's expected ones",
      example: 'reservation add --cluster alpha --nodes 4 --ends 2030-01-31',
      flags: [
        required('--cluster <name>', 'the cluster, by name or ID'),
        required('--nodes <count>', 'how many nodes'),
        optional('--ends <time>', 'when it ends'),
      ],
      async run({ api, options: { cluster, nodes, ends } }) {
        if (!/^[1-9]\d{0,5}$/.test(nodes)) throw usage(`'${nodes}' is not a number of nodes.`);
        const body = {
          ends_at: parseTime('--ends', ends),
          cluster_id: (await findCluster(api, cluster)).cluster.id,
          node_count: Number(nodes),
        };
        return reservations.one(await api.post('/operator/reservations', { body }));
      },
    }),
    changesOne('reservation', 'end', 'end a reservation', reservations, (api, id) =>
      api.post('/operator/reservations/{reservationID}/end', { path: { reservationID: id } }),
    ),
  ],
};
