/** `andromeda admin session`: SSH sessions that are open at the gateway, and those that are over. */
import { csv } from '../../domain/text.ts';
import { parseStart, parseTime } from '../arguments.ts';
import { type Business, pagesBySeq } from '../net/api.ts';
import { printAll, printer } from '../output.ts';
import { changesOne, lists, type Noun, optional, reads } from '../verb.ts';

const sessions = printer<Business['Session']>(
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

type PastSession = Business['PastSession'];

interface PastFilter {
  person?: string;
  cluster?: string;
  address?: string;
  key?: string;
  from?: string;
  to?: string;
  since?: string;
  output?: string;
}

const pastColumns = [
  ...['seq', 'id', 'username', 'user_id', 'cluster_id', 'login_node', 'remote_address', 'key_id'],
  ...['fingerprint', 'opened_at', 'closed_at', 'end_reason', 'bytes_up', 'bytes_down', 'channels', 'shells'],
  ...['file_transfers', 'command_count', 'commands', 'forward_count', 'forwards', 'job', 'job_node'],
] as (keyof PastSession)[];

const past = reads<PastFilter>({
  usage: 'past',
  summary: 'SSH sessions that are over, the last that ended first, as JSON lines or CSV',
  example: 'session past --person bob@physics.example --since 7d',
  flags: [
    optional('--person <email>', 'sessions of this person (or a user ID)'),
    optional('--cluster <name>', 'sessions on this cluster (or its ID)'),
    optional('--address <ip>', 'sessions from this address'),
    optional('--key <fingerprint>', 'sessions with this key (or its ID)'),
    optional('--from <time>', 'that had not ended before'),
    optional('--to <time>', 'that were opened before'),
    optional('--since <span>', 'that had not ended longer ago than, such as 2h').conflicts('from'),
  ],
  formats: ['json', 'csv'],
  async run({ api, options: { from, to, since, output, person, cluster, address, key } }) {
    const filter = {
      ...{ person, cluster, address, key },
      from: parseStart(from, since),
      to: parseTime('--to', to),
    };
    if (output === 'csv') await printAll([csv([pastColumns]).trimEnd()]);
    const readPage = (page: object) => api.get('/operator/sessions/past', { query: { ...filter, ...page } });
    for await (const page of pagesBySeq(async (page) => (await readPage(page)).sessions))
      await printAll(page.map((one) => (output === 'csv' ? rowOf(one) : JSON.stringify(one))));
    return undefined;
  },
});

function rowOf(one: PastSession): string {
  const cells = pastColumns.map((name) => {
    const value = one[name] ?? '';
    return Array.isArray(value) ? value.join('\n') : value;
  });
  return csv([cells]).trimEnd();
}

export const session: Noun = {
  name: 'session',
  summary: 'SSH sessions, open ones and those that are over',
  verbs: [
    lists('every open SSH session', sessions, 'sessions', (api) => api.get('/operator/sessions')),
    past,
    changesOne(
      'session',
      'close',
      'close an SSH session; the person sees the reason',
      sessions,
      (api, id) => api.post('/operator/sessions/{sessionID}/close', { path: { sessionID: id } }),
      'maintenance at noon',
    ),
  ],
};
