/** Who used how many GPUs for how long, and how much of them on each day. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { csv } from '../../../../domain/text.ts';
import { count } from '../../count.ts';
import { type GpuHours, readGpuHours } from '../../reads.ts';
import { useWho } from '../../who.tsx';
import { Select } from '../controls.tsx';
import { Loaded, Panel } from '../page.tsx';
import { SaveCsv } from '../save.tsx';
import { type Column, Table, Two } from '../table.tsx';

type Hours = GpuHours['items'][number];

interface Row {
  cluster: string;
  person: Hours['people'][number];
}

const columns: Column<Row>[] = [
  {
    name: 'Person',
    cell: ({ person }) => <Two first={<b>{person.person ?? person.user}</b>} second={person.user} />,
  },
  { name: 'Cluster', cell: ({ cluster }) => cluster },
  { name: 'GPU-hours', isNumber: true, cell: ({ person }) => person.gpu_hours.toFixed(2) },
];

const spans = [7, 30, 90].map((days) => [days, `${days} days`] as const);
/** The service has it no newer. */
const refetchInterval = 600_000;

/** Nothing for who may not list the organization's clusters. */
export function GpuHoursPanel() {
  const { orgID, seesClusters } = useWho();
  const [days, setDays] = useState<number>(30);
  const hours = useQuery({ ...readGpuHours(orgID, days), enabled: seesClusters, refetchInterval });
  if (!seesClusters) return null;
  const rows = (hours.data?.items ?? []).flatMap(({ cluster_name: cluster, people }) =>
    people.map((person) => ({ cluster, person })),
  );
  const text = () =>
    csv([
      ['cluster', 'user', 'person', 'gpu_hours'],
      ...rows.map(({ cluster, person: { user, person = '', gpu_hours: of } }) => [cluster, user, person, of]),
    ]);
  return (
    <Panel
      title="GPU-hours"
      tools={<SaveCsv name="gpu-hours.csv" of={hours} text={text} />}
      cli={`andromeda gpu-hours --days ${days}`}
      operation={`GET /gpu-hours?businessOrgId=${orgID}&days=${days}`}
    >
      <p>
        <Select id="gpu-days" label="Of the last" value={days} onChange={setDays} options={spans} />
      </p>
      <Loaded of={hours}>
        {({ items }) => (
          <>
            {items.map((one) => (
              <ClusterHours key={one.cluster_id} hours={one} />
            ))}
            <Table
              name="gpu-hours"
              rows={rows}
              id={({ cluster, person }) => `${cluster} ${person.user}`}
              text={({ cluster, person }) => `${cluster} ${person.user} ${person.person ?? ''}`}
              columns={columns}
              none={<p className="soft">Nobody that you may see has used a GPU in that time.</p>}
            />
          </>
        )}
      </Loaded>
    </Panel>
  );
}

function ClusterHours({ hours }: { hours: Hours }) {
  const {
    cluster_name: name,
    source,
    first_day: since,
    gpu_hours: all,
    members_gpu_hours: members,
    limits,
    days,
  } = hours;
  if (source === undefined) return <p className="soft small">{name}: nothing is known yet.</p>;
  return (
    <>
      <p>
        <b>{name}</b>: {all.toFixed(2)} GPU-hours since {since}, of members {members.toFixed(2)}
        {source === 'observed' && ', as observed, since its Slurm has no accounting'}.
      </p>
      <Days name={name} days={days} />
      {limits.length > 0 && (
        <details className="small">
          <summary>{count(limits.length, 'limit')} of its Slurm account</summary>
          <ul>
            {limits.map(({ user, name: limit, value, lab_file: wanted }) => (
              <li key={`${user} ${limit}`}>
                {user ?? 'account'}: {limit} {value || 'unset'}
                {wanted !== undefined && `, set by hand; the lab file has ${wanted}`}
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}

/** A bar for each day. */
function Days({ name, days }: { name: string; days: Hours['days'] }) {
  const most = Math.max(...days.map(({ gpu_hours: of }) => of), 0.01);
  const [width, height] = [6, 40];
  return (
    <svg
      className="gpu-days"
      role="img"
      aria-label={`GPU-hours of ${name} by day, at most ${most.toFixed(1)} on one`}
      viewBox={`0 0 ${days.length * width} ${height}`}
      width={days.length * width}
      height={height}
    >
      {days.map(({ day, gpu_hours: of }, index) => {
        const bar = Math.max(1, (of / most) * height);
        return (
          <rect key={day} x={index * width} y={height - bar} width={width - 1} height={bar}>
            <title>{`${day}: ${of.toFixed(2)}`}</title>
          </rect>
        );
      })}
    </svg>
  );
}
