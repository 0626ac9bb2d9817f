/** How something went over time: bars in plain SVG, stretched to the width there is, and the same as a table. */
import { Table } from './table.tsx';

export interface Bar {
  /** When it begins, in ms since 1970. */
  at: number;
  /** One on the other; undefined: nobody counted then. */
  values: readonly number[] | undefined;
}

export interface Series {
  name: string;
  kind: 'accent' | 'warn' | 'bad';
}

const height = 100;

export function Plot({
  title,
  summary,
  bars,
  series,
  format,
  most: atLeast,
  when,
}: {
  title: string;
  /** What it shows, as a sentence. */
  summary: string;
  bars: readonly Bar[];
  series: readonly Series[];
  format: (value: number) => string;
  /** What the scale reaches to at least. */
  most: number;
  when: Intl.DateTimeFormat;
}) {
  const sums = bars.map(({ values }) => (values ?? []).reduce((sum, one) => sum + one, 0));
  const most = Math.max(atLeast, ...sums);
  const [first] = bars;
  const last = bars.at(-1);
  return (
    <figure className="plot">
      <figcaption>
        <b>{title}</b> <span className="soft">{summary}</span>
      </figcaption>
      {series.length > 1 && (
        <p className="legend">
          {series.map(({ name, kind }) => (
            <span key={name}>
              <svg className={kind} viewBox="0 0 10 10" aria-hidden="true">
                <rect width="10" height="10" />
              </svg>
              {name}
            </span>
          ))}
        </p>
      )}
      <div className="drawing">
        <span className="top">{format(most)}</span>
        <svg
          viewBox={`0 0 ${bars.length * 10} ${height}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={`${title}: ${summary}`}
        >
          {bars.map((bar, index) => (
            <BarOf key={bar.at} bar={bar} x={index * 10} most={most} series={series} />
          ))}
        </svg>
      </div>
      {first && last && (
        <p className="axis">
          <span>{when.format(first.at)}</span>
          <span>{when.format(last.at)}</span>
        </p>
      )}
      <details>
        <summary>As a table</summary>
        <Table
          name={title}
          rows={bars.filter(({ values }) => values !== undefined).toReversed()}
          id={({ at }) => String(at)}
          columns={[
            { name: 'From', cell: ({ at }) => when.format(at) },
            ...series.map(({ name }, index) => ({
              name,
              isNumber: true,
              cell: ({ values }: Bar) => format(values?.[index] ?? 0),
            })),
          ]}
        />
      </details>
    </figure>
  );
}

function BarOf({ bar, x, most, series }: { bar: Bar; x: number; most: number; series: readonly Series[] }) {
  const { values } = bar;
  if (!values) return <rect className="unknown" x={x} y={height - 2} width={10} height={2} />;
  let y = height;
  return values.map((value, index) => {
    // What is not nothing can be seen.
    const size = value === 0 ? 0 : Math.max(1.5, (value / most) * height);
    y -= size;
    const kind = series[index]?.kind ?? 'accent';
    return <rect key={kind} className={kind} x={x + 1} y={y} width={8} height={size} />;
  });
}
