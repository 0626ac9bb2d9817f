/** What will change: what changes, what restarts, and what ends with that. */
import type { Check } from './reads.ts';

const names = {
  login: 'the login nodes',
  controller: 'the controller',
  accounting: 'accounting',
  compute: 'the compute nodes, one at a time',
} as const;

const mostShown = 12;
const list = new Intl.ListFormat('en-GB');

export function Consequences({ check, hasFaults }: { check: Check | undefined; hasFaults: boolean }) {
  return (
    <section className="consequences" aria-live="polite">
      <h3>What will change</h3>
      {check ? (
        <Checked check={check} />
      ) : (
        <p className="soft">{hasFaults ? 'Fix the problems above to save.' : 'Checking…'}</p>
      )}
    </section>
  );
}

function endingJobs(count: number | undefined): string {
  if (count === undefined) return 'Running jobs may end: which run is not known at the moment.';
  return count === 1 ? 'One running job ends.' : `${count} running jobs end.`;
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
        <li>Restarts {list.format(restarts.map((one) => names[one]))}.</li>
      )}
      {openSessions > 0 && (
        <li>
          <b>
            {openSessions === 1 ? 'One open SSH session ends.' : `${openSessions} open SSH sessions end.`}
          </b>
        </li>
      )}
      {endedJobs !== 0 && (
        <li>
          <b>{endingJobs(endedJobs)}</b>
        </li>
      )}
      {removedPartitions.length > 0 && (
        <li>
          <b>The jobs in {list.format(removedPartitions)} end</b>, as{' '}
          {removedPartitions.length === 1 ? 'it is' : 'they are'} no longer defined.
        </li>
      )}
    </ul>
  );
}
