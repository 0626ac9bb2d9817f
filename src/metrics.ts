/**
 * Prometheus metrics, on an address of their own. They are made from the events that the rooms log, so that no room
 * knows of them: `watch` wraps the logger, and a table below says which event counts as what.
 */
import type { RequestListener } from 'node:http';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { EventLevel, EventName, LogEvents, Logger } from './log.ts';

export interface Metrics {
  /** The logger to hand to the rooms: what it is told, it counts and passes on. */
  watch(log: Logger): Logger;
  /** Answers `GET /metrics`; `sessions` says how many SSH sessions are open when asked. */
  handler(sessions: () => number): RequestListener;
}

const quick = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];
const slow = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];

/** Makes the metrics of one server. */
export function createMetrics(now: () => number): Metrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  const requests = new Counter({
    name: 'andromeda_http_requests_total',
    help: 'Requests answered, by API, operation and status (499: the caller went away)',
    labelNames: ['api', 'operation', 'status'],
    registers,
  });
  const requestSeconds = new Histogram({
    name: 'andromeda_http_request_seconds',
    help: 'Time from the request to the end of its answer',
    labelNames: ['api', 'operation'],
    buckets: quick,
    registers,
  });
  const passSeconds = new Histogram({
    name: 'andromeda_sync_pass_seconds',
    help: 'Time of one pass over a cluster, by outcome',
    labelNames: ['outcome'],
    buckets: slow,
    registers,
  });
  const convergenceSeconds = new Histogram({
    name: 'andromeda_sync_convergence_seconds',
    help: 'Time from a change until a cluster has applied it',
    buckets: slow,
    registers,
  });
  const logins = new Counter({
    name: 'andromeda_gateway_logins_total',
    help: 'Logins at the SSH gateway, by result and, where refused, reason',
    labelNames: ['result', 'reason'],
    registers,
  });
  const closedSessions = new Counter({
    name: 'andromeda_gateway_sessions_closed_total',
    help: 'SSH sessions that ended, by why',
    labelNames: ['reason'],
    registers,
  });
  const sessionSeconds = new Histogram({
    name: 'andromeda_gateway_session_seconds',
    help: 'How long SSH sessions lasted',
    buckets: [1, 10, 60, 600, 3_600, 6 * 3_600, 24 * 3_600],
    registers,
  });
  const sessionBytes = new Counter({
    name: 'andromeda_gateway_bytes_total',
    help: 'Bytes of SSH sessions that ended, by direction',
    labelNames: ['direction'],
    registers,
  });
  const writeSeconds = new Histogram({
    name: 'andromeda_store_write_seconds',
    help: 'Time of a write transaction, the wait for the ones before it included',
    buckets: quick,
    registers,
  });
  const warnings = new Counter({
    name: 'andromeda_log_events_total',
    help: 'Warnings and errors in the log, by event',
    labelNames: ['level', 'event'],
    registers,
  });
  const auditUp = new Gauge({
    name: 'andromeda_audit_destination_up',
    help: 'Whether a destination of the audit trail takes what it is sent (1) or not (0)',
    labelNames: ['destination'],
    registers,
  });
  const auditWaiting = new Gauge({
    name: 'andromeda_audit_waiting_entries',
    help: 'Entries of the audit trail that a destination has not been sent',
    labelNames: ['destination'],
    registers,
  });
  /** By cluster and side. */
  const passedAt = new Map<string, { cluster: string; at: number }>();
  new Gauge({
    name: 'andromeda_sync_lag_seconds',
    help: 'Time since the last pass over a cluster that went well',
    labelNames: ['cluster'],
    registers,
    collect() {
      this.reset();
      // A cluster lags as its slower side does.
      const oldest = new Map<string, number>();
      for (const { cluster, at } of passedAt.values()) {
        oldest.set(cluster, Math.min(at, oldest.get(cluster) ?? at));
      }
      for (const [cluster, at] of oldest) this.set({ cluster }, (now() - at) / 1000);
    },
  });

  const counts: { [Name in EventName]?: (fields: LogEvents[Name]) => void } = {
    'http.request': ({ api, operation = 'none', status, ms }) => {
      requests.inc({ api, operation, status });
      requestSeconds.observe({ api, operation }, ms / 1000);
    },
    'sync.passed': ({ cluster, side, ms }) => {
      passedAt.set(`${cluster}/${side}`, { cluster: cluster, at: now() });
      passSeconds.observe({ outcome: 'done' }, ms / 1000);
    },
    'sync.failed': ({ cluster, side, ms }) => {
      // One that never went well has been lagging since it was first tried.
      const key = `${cluster}/${side}`;
      if (!passedAt.has(key)) passedAt.set(key, { cluster: cluster, at: now() });
      passSeconds.observe({ outcome: 'failed' }, ms / 1000);
    },
    'sync.converged': ({ ms }) => convergenceSeconds.observe(ms / 1000),
    'sync.released': ({ cluster, side }) => void passedAt.delete(`${cluster}/${side}`),
    'gateway.login.accepted': () => logins.inc({ result: 'accepted', reason: '' }),
    'gateway.login.refused': ({ reason }) => logins.inc({ result: 'refused', reason }),
    'gateway.session.closed': ({ why, durationMs, bytesUp = 0, bytesDown = 0 }) => {
      // What follows a colon tells of one case.
      closedSessions.inc({ reason: why.split(':')[0] ?? '' });
      sessionSeconds.observe(durationMs / 1000);
      sessionBytes.inc({ direction: 'up' }, bytesUp);
      sessionBytes.inc({ direction: 'down' }, bytesDown);
    },
    'audit.sending': ({ destination, waiting }) => auditWaiting.set({ destination }, waiting),
    'audit.destination.working': ({ destination }) => auditUp.set({ destination }, 1),
    'audit.destination.failed': ({ destination }) => auditUp.set({ destination }, 0),
    'store.written': ({ ms }) => writeSeconds.observe(ms / 1000),
  };

  return {
    watch(log) {
      const at =
        (level: EventLevel) =>
        <Name extends EventName>(event: Name, fields: LogEvents[Name]) => {
          counts[event]?.(fields);
          if (level === 'warn' || level === 'error') warnings.inc({ level, event });
          log[level](event, fields);
        };
      return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
    },
    handler(sessions) {
      new Gauge({
        name: 'andromeda_gateway_sessions',
        help: 'SSH sessions that are open',
        registers,
        collect() {
          this.set(sessions());
        },
      });
      return async (request, response) => {
        if (request.method !== 'GET' || request.url !== '/metrics') {
          response.writeHead(404, { 'Content-Type': 'text/plain' }).end('Metrics are at GET /metrics.\n');
          return;
        }
        const text = await registry.metrics();
        response.writeHead(200, { 'Content-Type': registry.contentType }).end(text);
      };
    },
  };
}
