/** `andromeda admin activity`: how much went on. */
import { printer } from '../answer.ts';
import type { Business } from '../net/operations.ts';
import { parseSince } from '../time.ts';
import { optional, reads } from '../verb.ts';

const table = printer<Business['Activity']>(
  {
    INTERVAL: (row) => row.at,
    LOGINS: (row) => row.logins,
    REFUSED: (row) => row.refused,
    'WATCHED-S': (row) => row.watched_seconds,
    'BEHIND-S': (row) => row.behind_seconds,
    'FAILING-S': (row) => row.failing_seconds,
  },
  'Nothing was counted in that time.',
);

/** For so long, intervals of five minutes are kept. */
const fineMs = 2 * 86_400_000;

export const activity = reads<{ since?: string }>({
  usage: 'activity',
  summary: 'logins, refusals, and for how long clusters were behind or failing, hour by hour',
  example: 'activity --since 12h',
  flags: [
    optional('--since <span>', 'not longer ago than, such as 12h; up to 2d in steps of five minutes').default(
      '7d',
    ),
  ],
  async run({ api, options: { since = '7d' } }) {
    const now = Date.now();
    const from = parseSince('--since', since, now);
    const step = now - Date.parse(from) <= fineMs ? 300 : 3600;
    const json = await api.get('/operator/activity', { query: { from, step } });
    return table.many(json, json.intervals);
  },
});
