/** The changes that saving a configuration makes, with the restarts and ended jobs that they cause. */
import { restartsText } from '../../../domain/slurm/restarts.ts';
import { Effects } from '../parts/page.tsx';
import { count } from '../parts/values.tsx';
import type { Check } from './reads.ts';

const mostShown = 12;

export function Consequences({ check, hasFaults }: { check: Check | undefined; hasFaults: boolean }) {
  return (
    <Effects isWaiting={!check && !hasFaults}>
      {check ? (
        <Checked check={check} />
      ) : (
        <p className="soft">{hasFaults ? 'Fix the problems above to save.' : 'Checking…'}</p>
      )}
    </Effects>
  );
}

function Checked({ check }: { check: Check }) {
  const { changes, changeCount, hasSlurm, rollout, restarts, openSessions, endedJobs, removedPartitions } =
    check;
  if (changes.length === 0) return <p>Same as the current configuration: nothing would change.</p>;
  const more = changeCount - Math.min(changes.length, mostShown);
  return (
    <ul>
      <li>
        {changes.slice(0, mostShown).map(({ field, file, change }, index) => (
          <span key={`${field}/${file}`}>
            {index > 0 && ', '}
            <code>{file === undefined ? field : `${field}/${file}`}</code> is {change}
          </span>
        ))}
        {more > 0 && ` and ${more} more`}.
      </li>
      {hasSlurm && (
        <li>It is tested on the cluster first, and rejected if Slurm or a node does not start with it.</li>
      )}
      {!hasSlurm ? (
        <li>No effect: the cluster does not run Slurm.</li>
      ) : rollout === 'live' ? (
        <li>Restarts slurmctld, and slurmd on one node after the other. Sessions and jobs continue.</li>
      ) : (
        <li>Restarts: {restartsText(restarts)}.</li>
      )}
      {openSessions > 0 && (
        <li>
          <b>{count(openSessions, 'open SSH session ends', 'open SSH sessions end')}.</b>
        </li>
      )}
      {endedJobs !== 0 && (
        <li>
          <b>
            {endedJobs === undefined
              ? 'Running jobs may end: which run is not known at the moment.'
              : `${count(endedJobs, 'running job ends', 'running jobs end')}.`}
          </b>
        </li>
      )}
      {removedPartitions.length > 0 && (
        <li>
          <b>The jobs in {removedPartitions.join(', ')} end</b>: no longer defined.
        </li>
      )}
    </ul>
  );
}
