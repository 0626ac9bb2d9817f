/** How metrics are made: the kinds that Prometheus has, and what counts an event. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { EventName, LogEvents } from '../../../lib/log.ts';

/** What each event counts as. */
export type Counts = { [Name in EventName]?: (fields: LogEvents[Name]) => void };

export function counter(registry: Registry, name: string, help: string, labelNames: string[] = []) {
  return new Counter({ name, help, labelNames, registers: [registry] });
}

export function histogram(
  registry: Registry,
  name: string,
  help: string,
  buckets: number[],
  labelNames: string[] = [],
) {
  return new Histogram({ name, help, labelNames, buckets, registers: [registry] });
}

/** `collect`, if there is one, sets it whenever it is asked for. */
export function gauge(
  registry: Registry,
  name: string,
  help: string,
  labelNames: string[],
  collect?: (it: Gauge) => void,
): Gauge {
  const options = { name, help, labelNames, registers: [registry] };
  if (!collect) return new Gauge(options);
  return new Gauge({
    ...options,
    collect() {
      collect(this);
    },
  });
}
