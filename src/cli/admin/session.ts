/** `andromeda admin session`: SSH sessions that are open at the gateway. */

import { printer } from '../answer.ts';
import type { Business } from '../net/operations.ts';
import type { Noun } from '../verb.ts';
import { changesOne, lists } from './common-verbs.ts';

type SshSession = Business['Session'];

const sessions = printer<SshSession>(
  {
    LOGIN: (row) => row.login_name,
    FROM: (row) => row.remote_address,
    NODE: (row) => row.login_node,
    OPENED: (row) => row.opened_at,
    CHANNELS: (row) => row.channels,
    UP: (row) => row.bytes_up,
    DOWN: (row) => row.bytes_down,
    ID: (row) => row.id,
  },
  'There are no open sessions.',
);

export const session: Noun = {
  name: 'session',
  summary: 'SSH sessions that are open',
  verbs: [
    lists(
      'session',
      'every open SSH session',
      sessions,
      (api) => api.get('/operator/sessions'),
      (json) => json.sessions,
    ),
    changesOne(
      'session',
      'close',
      'close an SSH session; the person is told the reason',
      sessions,
      (api, id) => api.post('/operator/sessions/{sessionID}/close', { path: { sessionID: id } }),
      'maintenance at noon',
    ),
  ],
};
