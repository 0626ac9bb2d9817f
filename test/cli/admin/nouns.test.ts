/** What of the operator's nouns the real service has not at hand in ../real.test.ts, as golden text. */
import { join } from 'node:path';
import { goldenText } from '../golden.ts';
import { alpha, alphaId, bob, gatewayRoute, lookups, purchase, session } from './operator-api.ts';

const golden = goldenText(join(import.meta.dirname, 'nouns.golden.txt'), ['admin'], lookups);

const abandoned = {
  ...alpha,
  cluster: { ...alpha.cluster, cleanup_state: 'abandoned; left behind: the account ada' },
};
golden(
  'admin cluster release --abandon does not wait, and names what is left there',
  { [`POST /operator/clusters/${alphaId}/release?abandon=true`]: abandoned },
  ['cluster release alpha --yes --abandon'],
);

golden(
  'admin purchase and session list, and change one by its ID',
  {
    'GET /operator/purchases': { purchases: [purchase] },
    'POST /operator/purchases/purchase_1/accept': purchase,
    'POST /operator/purchases/purchase_1/decline': purchase,
    'GET /operator/sessions': { sessions: [session] },
    'POST /operator/sessions/session_1/close': session,
  },
  [
    'purchase list',
    'purchase accept purchase_1',
    'purchase decline purchase_1',
    'session list',
    'session close session_1',
  ],
);

golden(
  'admin person password takes the first line of standard input as it is',
  { 'PUT /operator/people/user_bob/password': bob },
  [{ args: 'person password bob@physics.example', input: ' päss word \nsecond line\n' }],
);

golden("admin gateway key prints the gateway's public key: exactly one line", gatewayRoute, ['gateway key']);

const problem = {
  area: 'cluster',
  about: 'alpha',
  side: 'slurm',
  urgency: 'now',
  since: '2026-01-02T03:04:05.000Z',
  message: 'The disk is full.',
  action: 'Make room.',
  next_try_at: '2026-01-02T03:05:05.000Z',
};
golden(
  'admin problems and installation say what needs attention, and which keys and backups there are',
  {
    'GET /operator/problems': {
      problems: [
        problem,
        {
          area: 'audit',
          about: 'copy to tls://logs:6514',
          urgency: 'now',
          message: 'It is away.',
          action: 'See that it is up.',
        },
      ],
    },
    'GET /operator/installation': {
      keys: [
        {
          kind: 'client',
          current: { id: 'SHA256:d' },
          former: { id: 'SHA256:c', until: '2026-01-31T00:00:00.000Z' },
        },
        {
          kind: 'host',
          current: { id: 'SHA256:a', until: '2026-01-31T00:00:00.000Z' },
          next: { id: 'SHA256:b', from: '2026-01-16T00:00:00.000Z' },
        },
      ],
      backup: {
        last: { at: '2026-01-01T00:00:00.000Z', file: '/b/one', bytes: 5 },
        drill: { at: '2026-01-02T00:00:00.000Z', file: '/b/one', good: false },
      },
    },
  },
  ['problems', 'installation'],
);
