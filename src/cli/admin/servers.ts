/** `andromeda admin servers`: the servers that share the database. */
import { printer } from '../answer.ts';
import type { Business } from '../net/operations.ts';
import type { Noun } from '../verb.ts';
import { lists } from './common-verbs.ts';

const table = printer<Business['Server']>(
  {
    NAME: (row) => row.name,
    STATE: (row) => (row.answers ? `${row.state}, answers` : row.state),
    VERSION: (row) => row.version,
    STARTED: (row) => row.started_at,
    SEEN: (row) => row.seen_at,
    LEASES: (row) => row.leases,
    ID: (row) => row.id,
  },
  'There are no servers.',
);

export const servers: Noun = {
  name: 'servers',
  summary: 'the servers that share the database',
  verbs: [
    lists(
      'servers',
      'every server, and those that ended without a word within a day',
      table,
      (api) => api.get('/operator/servers'),
      (json) => json.servers,
    ),
  ],
};
