/** Reviews of members' access in the background, by one server: see `domain/access/member-review.ts`. */
import type { Logger } from '../../lib/log.ts';
import { type Rounds, startRounds } from '../../lib/rounds.ts';
import { reviewMembers } from '../../store/audit/member-reviews.ts';
import type { Leases } from '../../store/servers/leases.ts';

/** An end is 30 days ahead: an hour is soon. */
const everyMs = 3_600_000;

export function startMemberReviews({
  leases,
  months,
  log,
  now,
}: {
  leases: Leases;
  months: number;
  log: Logger;
  now(): number;
}): () => Promise<void> {
  let rounds: Rounds | undefined;
  return leases.want('member reviews', {
    begin({ store }) {
      const round = async (stopping: AbortSignal) => {
        const ended = await reviewMembers(store, months, { now: now(), stopping });
        log[ended > 0 ? 'info' : 'debug']('access.reviewed', { ended });
      };
      const onFault = (error: unknown) => log.error('access.review.failed', { error });
      rounds = startRounds(round, { everyMs, onFault });
    },
    async end() {
      await rounds?.stop();
    },
  });
}
