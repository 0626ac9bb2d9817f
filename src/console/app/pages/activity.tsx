/** For operators: logins, refusals and convergence over time. */
import { queryOptions, useQuery } from '@tanstack/react-query';
import { Link, useSearch } from '@tanstack/react-router';
import type { components } from '../../../api/business.ts';
import { bodyOf, business } from '../api.ts';
import { AsCommand } from '../parts/copy.tsx';
import { Empty, Loaded, Page, Panel } from '../parts/page.tsx';
import { type Bar, Plot } from '../parts/plot.tsx';

type Activity = components['schemas']['Activity'];

const hourMs = 3_600_000;
/** What can be looked at: how long, in steps of what the store has, and how many of these a bar is. */
const ranges = {
  '24h': { name: '24 hours', ms: 24 * hourMs, step: 300, barMs: hourMs / 2 },
  '7d': { name: '7 days', ms: 7 * 24 * hourMs, step: 3600, barMs: 3 * hourMs },
  '90d': { name: '90 days', ms: 90 * 24 * hourMs, step: 3600, barMs: 24 * hourMs },
} as const;
type Range = keyof typeof ranges;

function rangeOf(text: string | undefined): Range {
  return text !== undefined && Object.hasOwn(ranges, text) ? (text as Range) : '24h';
}

const readActivity = (range: Range) =>
  queryOptions({
    queryKey: ['operator', 'activity', range],
    meta: { topics: ['ssh-sessions', 'installation'] },
    queryFn: async () => {
      const { ms, step, barMs } = ranges[range];
      const now = Date.now();
      const from = Math.floor((now - ms) / barMs + 1) * barMs;
      const query = { step, from: new Date(from).toISOString() } as const;
      const { intervals } = bodyOf(await business.GET('/operator/activity', { params: { query } }));
      return { intervals, from, now };
    },
  });

export function ActivityPage() {
  const search = useSearch({ from: '/frame/activity' });
  const range = rangeOf(search.range);
  const activity = useQuery(readActivity(range));
  return (
    <Page
      title="Over time"
      sentence={activity.data && <Sentence intervals={activity.data.intervals} range={range} />}
    >
      <nav className="ranges" aria-label="How long">
        {Object.entries(ranges).map(([key, { name }]) => (
          <Link
            key={key}
            to="/activity"
            search={{ range: key }}
            aria-current={key === range ? 'true' : undefined}
          >
            {name}
          </Link>
        ))}
      </nav>
      <Panel
        title={`The last ${ranges[range].name}`}
        tools={
          <AsCommand
            api="Business"
            cli={`andromeda admin activity --since ${range}`}
            operation={`GET /operator/activity?step=${ranges[range].step}&from=…`}
          />
        }
      >
        <Loaded of={activity}>
          {({ intervals, from, now }) =>
            intervals.length === 0 ? (
              <Empty>Nothing was counted yet. It is written down once a minute.</Empty>
            ) : (
              <Plots intervals={intervals} from={from} now={now} range={range} />
            )
          }
        </Loaded>
      </Panel>
    </Page>
  );
}

function Sentence({ intervals, range }: { intervals: readonly Activity[]; range: Range }) {
  const { logins, refused, watched, behind, failing } = sumOf(intervals);
  const bad = watched === 0 ? 0 : Math.max(behind, failing) / watched;
  return (
    <>
      In {ranges[range].name}, {count(logins, 'login', 'logins')} and {count(refused, 'refusal', 'refusals')};{' '}
      {bad === 0
        ? 'clusters were converged all the time that is known.'
        : `clusters were not converged for ${percent(bad)} of the time.`}
    </>
  );
}

function count(number: number, one: string, more: string): string {
  return `${number.toLocaleString()} ${number === 1 ? one : more}`;
}

function percent(share: number): string {
  const hundredths = share * 100;
  return hundredths > 0 && hundredths < 0.1 ? '<0.1 %' : `${hundredths.toFixed(hundredths < 10 ? 1 : 0)} %`;
}

function sumOf(intervals: readonly Activity[]) {
  const sum = { logins: 0, refused: 0, watched: 0, behind: 0, failing: 0 };
  for (const one of intervals) {
    sum.logins += one.logins;
    sum.refused += one.refused;
    sum.watched += one.watched_seconds;
    sum.behind += one.behind_seconds;
    sum.failing += one.failing_seconds;
  }
  return sum;
}

const moments = {
  '24h': new Intl.DateTimeFormat(undefined, { weekday: 'short', hour: '2-digit', minute: '2-digit' }),
  '7d': new Intl.DateTimeFormat(undefined, {
    weekday: 'short',
    day: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
  }),
  '90d': new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' }),
} as const;

function Plots({
  intervals,
  from,
  now,
  range,
}: {
  intervals: readonly Activity[];
  from: number;
  now: number;
  range: Range;
}) {
  const { barMs } = ranges[range];
  const groups = Map.groupBy(intervals, ({ at }) => Math.floor((Date.parse(at) - from) / barMs));
  const bars = (valuesOf: (sum: ReturnType<typeof sumOf>) => number[] | undefined): Bar[] =>
    Array.from({ length: Math.ceil((now - from) / barMs) }, (_, index) => {
      const group = groups.get(index);
      return { at: from + index * barMs, values: group && valuesOf(sumOf(group)) };
    });
  const whole = sumOf(intervals);
  const common = { when: moments[range] };
  const number = (value: number) => value.toLocaleString();
  return (
    <>
      <Plot
        {...common}
        title="Logins"
        summary={`${number(whole.logins)} in all`}
        bars={bars(({ logins }) => [logins])}
        series={[{ name: 'Logins', kind: 'accent' }]}
        format={number}
        most={4}
      />
      <Plot
        {...common}
        title="Refused logins"
        summary={`${number(whole.refused)} in all, of strangers too`}
        bars={bars(({ refused }) => [refused])}
        series={[{ name: 'Refused', kind: 'warn' }]}
        format={number}
        most={4}
      />
      <Plot
        {...common}
        title="Not converged"
        summary="share of the time, of all sides of clusters together"
        bars={bars(({ watched, behind, failing }) =>
          watched === 0
            ? undefined
            : [failing / watched, Math.max(0, Math.min(behind, watched - failing)) / watched],
        )}
        series={[
          { name: 'Failing', kind: 'bad' },
          { name: 'A change is on its way', kind: 'accent' },
        ]}
        format={percent}
        most={0.1}
      />
    </>
  );
}
