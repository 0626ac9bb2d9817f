/**
 * Prometheus metrics, on an address of their own. They are made from the events that other folders log, so that none of them
 * knows of them: `watch` wraps the logger, and a table below says which event counts as what.
 */
import type { RequestListener } from 'node:http';
import { Counter, collectDefaultMetrics, Registry } from 'prom-client';
import type { Gateways } from '../../../gateway/process/gateways.ts';
import { messageOf } from '../../../lib/error-message.ts';
import type { EventLevel, EventName, LogEvents, Logger } from '../../../lib/log.ts';
import type { Config } from '../../config/index.ts';
import { errorEvents } from './error-events.ts';
import { measureInstallation } from './installation-metrics.ts';
import { type Counts, counter, gauge, histogram } from './metric-kinds.ts';
import { syncCounts } from './sync-metrics.ts';

export interface Metrics {
  /** The logger to hand to the parts: it counts each event and passes it on. */
  watch(log: Logger): Logger;
  /** Answers `GET /metrics`, for which it asks the gateway. */
  handler(gateway: Pick<Gateways, 'count' | 'unreached' | 'fault'>): RequestListener;
}

const quick = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

/** Makes the metrics of one server; those of its files where its configuration is given. */
export function createMetrics(now: () => number, config?: Config): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  if (config) measureInstallation(registry, config);
  const counts = createCounts(registry, now);
  const warnings = new Counter({
    name: 'andromeda_log_events_total',
    help: 'Warnings and errors in the log, by event',
    labelNames: ['level', 'event'],
    registers: [registry],
  });
  for (const event of errorEvents) warnings.inc({ level: 'error', event }, 0);
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
    handler(gateway) {
      gauge(registry, 'andromeda_gateway_sessions', 'SSH sessions that are open', [], (it) =>
        it.set(gateway.count()),
      );
      const up = 'Whether a gateway takes SSH connections (1) or not (0), as far as the service knows';
      gauge(registry, 'andromeda_gateway_up', up, [], (it) => it.set(gateway.fault === undefined ? 1 : 0));
      const unreached =
        'Gateway processes that do not answer, or have not confirmed a revocation or another change';
      gauge(registry, 'andromeda_gateway_unreached', unreached, [], (it) => it.set(gateway.unreached.length));
      return async (request, response) => {
        if (request.method !== 'GET' || request.url !== '/metrics') {
          response.writeHead(404, { 'Content-Type': 'text/plain' }).end('Metrics are at GET /metrics.\n');
          return;
        }
        try {
          const text = await registry.metrics();
          response.writeHead(200, { 'Content-Type': registry.contentType }).end(text);
        } catch (error) {
          // A figure that cannot be had must not end the service.
          const text = `The metrics cannot be collected: ${messageOf(error)}\n`;
          response.writeHead(500, { 'Content-Type': 'text/plain; charset=utf-8' }).end(text);
        }
      };
    },
  };
}

/** What each event counts as. */
function createCounts(registry: Registry, now: () => number): Counts {
  return {
    ...httpCounts(registry),
    ...syncCounts(registry, now),
    ...gatewayCounts(registry),
    ...issuerCounts(registry),
    ...auditCounts(registry, now),
    ...storeCounts(registry),
    ...tracingCounts(registry),
    ...acmeCounts(registry),
    ...serverCounts(registry),
  };
}

function httpCounts(registry: Registry): Counts {
  const requests = counter(
    registry,
    'andromeda_http_requests_total',
    'Requests answered, by API, operation and status (499: the caller went away)',
    ['api', 'operation', 'status'],
  );
  const seconds = histogram(
    registry,
    'andromeda_http_request_seconds',
    'Time from the request to the end of its answer',
    quick,
    ['api', 'operation'],
  );
  return {
    'http.request': ({ api, operation = 'none', status, ms }) => {
      requests.inc({ api, operation, status });
      seconds.observe({ api, operation }, ms / 1000);
    },
  };
}

function gatewayCounts(registry: Registry): Counts {
  const logins = counter(
    registry,
    'andromeda_gateway_logins_total',
    'Logins at the SSH gateway, by result and, where refused, reason',
    ['result', 'reason'],
  );
  const closed = counter(
    registry,
    'andromeda_gateway_sessions_closed_total',
    'SSH sessions that ended, by why',
    ['reason'],
  );
  const seconds = histogram(registry, 'andromeda_gateway_session_seconds', 'How long SSH sessions lasted', [
    1,
    10,
    60,
    600,
    3_600,
    6 * 3_600,
    24 * 3_600,
  ]);
  const bytes = counter(
    registry,
    'andromeda_gateway_bytes_total',
    'Bytes of SSH sessions that ended, by direction',
    ['direction'],
  );
  const refused = counter(
    registry,
    'andromeda_gateway_connections_refused_total',
    'Connections to the SSH gateway that were refused before a login, by reason',
    ['reason'],
  );
  return {
    'gateway.connection.refused': ({ reason }) => refused.inc({ reason }),
    'gateway.connections.refused': ({ reason, connections }) => refused.inc({ reason }, connections),
    'gateway.login.accepted': () => logins.inc({ result: 'accepted', reason: '' }),
    'gateway.login.refused': ({ reason }) => logins.inc({ result: 'refused', reason }),
    'gateway.logins.refused': ({ reason, logins: more }) => logins.inc({ result: 'refused', reason }, more),
    'gateway.session.closed': ({ why, durationMs, bytesUp = 0, bytesDown = 0 }) => {
      // What follows a colon is about one case.
      closed.inc({ reason: why.split(':')[0] ?? '' });
      seconds.observe(durationMs / 1000);
      bytes.inc({ direction: 'up' }, bytesUp);
      bytes.inc({ direction: 'down' }, bytesDown);
    },
  };
}

function issuerCounts(registry: Registry): Counts {
  const signIns = counter(
    registry,
    'andromeda_sign_ins_total',
    'Sign-ins at the embedded issuer, by result: done, refused (a wrong email or password), throttled',
    ['result'],
  );
  return {
    'issuer.sign_in': () => signIns.inc({ result: 'done' }),
    'issuer.sign_in.refused': () => signIns.inc({ result: 'refused' }),
    'issuer.sign_in.throttled': () => signIns.inc({ result: 'throttled' }),
  };
}

function auditCounts(registry: Registry, now: () => number): Counts {
  const up = gauge(
    registry,
    'andromeda_audit_destination_up',
    'Whether a destination of the audit trail takes what it is sent (1) or not (0)',
    ['destination'],
  );
  const unsent = gauge(
    registry,
    'andromeda_audit_waiting_entries',
    'Entries of the audit trail that a destination has not been sent',
    ['destination'],
  );
  const blocked = gauge(
    registry,
    'andromeda_audit_destination_blocked',
    'Whether a destination of the audit trail refuses an entry for what it is (1), so that none behind it is sent',
    ['destination'],
  );
  const failures = counter(
    registry,
    'andromeda_audit_failures_total',
    'Attempts to send the audit trail that failed',
    ['destination'],
  );
  /** Since when the oldest entry waits that a destination has not been sent; undefined: none does. */
  const oldest = new Map<string, string | undefined>();
  gauge(
    registry,
    'andromeda_audit_lag_seconds',
    'Age of the oldest entry of the audit trail that a destination has not been sent; 0 where none waits',
    ['destination'],
    (it) => {
      for (const [destination, at] of oldest)
        it.set({ destination }, at === undefined ? 0 : Math.max(0, now() - Date.parse(at)) / 1000);
    },
  );
  return {
    'audit.sending': ({ destination, waiting, oldestAt }) => {
      unsent.set({ destination }, waiting);
      oldest.set(destination, oldestAt);
      failures.inc({ destination }, 0);
    },
    'audit.attempt.failed': ({ destination }) => failures.inc({ destination }),
    'audit.message.refused': ({ destination }) => {
      up.set({ destination }, 0);
      blocked.set({ destination }, 1);
    },
    'audit.destination.working': ({ destination }) => {
      up.set({ destination }, 1);
      blocked.set({ destination }, 0);
    },
    'audit.destination.failed': ({ destination }) => {
      up.set({ destination }, 0);
      blocked.set({ destination }, 0);
    },
  };
}

function tracingCounts(registry: Registry): Counts {
  const dropped = counter(
    registry,
    'andromeda_tracing_dropped_spans_total',
    'Spans that the collector of traces did not get',
  );
  return { 'tracing.dropped': ({ spans }) => dropped.inc(spans) };
}

function acmeCounts(registry: Registry): Counts {
  const attempts = counter(
    registry,
    'andromeda_acme_attempts_total',
    'Attempts to obtain a TLS certificate (ACME), by result: done, failed',
    ['result'],
  );
  return {
    'acme.obtained': () => attempts.inc({ result: 'done' }),
    'acme.failed': () => attempts.inc({ result: 'failed' }),
  };
}

function serverCounts(registry: Registry): Counts {
  const servers = gauge(
    registry,
    'andromeda_servers',
    'Servers that share the database and are there, this one among them',
    [],
  );
  servers.set(1);
  const held = gauge(
    registry,
    'andromeda_leases',
    'What this server does for all that share the database, by leases: sides of clusters, and the audit trail',
    [],
  );
  const clock = gauge(
    registry,
    'andromeda_clock_difference_seconds',
    'How far the clock of the database that servers share is ahead of this host’s, at least',
    [],
  );
  const former = gauge(
    registry,
    'andromeda_database_former_primaries',
    'PostgreSQL primaries that take writes and are not served from, as another host has taken over',
    [],
  );
  former.set(0);
  const changes = counter(
    registry,
    'andromeda_lease_changes_total',
    'Leases that this server took, lost to another, or left to others',
    ['change'],
  );
  return {
    'servers.counted': ({ servers: count, leases }) => {
      servers.set(count);
      held.set(leases);
    },
    'database.former_primary': ({ primaries }) => former.set(primaries),
    'servers.clock': ({ differsMs }) => clock.set(differsMs / 1000),
    'lease.taken': () => changes.inc({ change: 'taken' }),
    'lease.lost': () => changes.inc({ change: 'lost' }),
    'lease.left': () => changes.inc({ change: 'left' }),
  };
}

function storeCounts(registry: Registry): Counts {
  const seconds = histogram(
    registry,
    'andromeda_store_write_seconds',
    'Time of a write transaction, the wait for the ones before it included',
    quick,
  );
  return { 'store.written': ({ ms }) => seconds.observe(ms / 1000) };
}
