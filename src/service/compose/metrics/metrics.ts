/**
 * Prometheus metrics, on an address of their own. They are derived from the events that other folders log, so that
 * none of those depends on metrics: `watch` wraps the logger, and the tables below map events to metrics.
 */
import { statfsSync, statSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { join } from 'node:path';
import { collectDefaultMetrics, Registry } from 'prom-client';
import manifest from '../../../../package.json' with { type: 'json' };
import type { Gateways } from '../../../gateway/process/gateways.ts';
import { messageOf } from '../../../lib/error-message.ts';
import type { EventLevel, EventName, LogEvents, Logger } from '../../../lib/log.ts';
import { build } from '../../../lib/packaging.ts';
import { readBackupFailure, readLastBackup } from '../../../store/data-dir/last-backup.ts';
import { listCertificates } from '../../config/certificates.ts';
import type { Config } from '../../config/index.ts';
import { type Counts, errorEvents, type Kinds, kindsOf, type MetricName } from './metric-kinds.ts';

export interface Metrics {
  /** Wraps the logger for the parts: counts each event and passes it on. */
  watch(log: Logger): Logger;
  /** Answers `GET /metrics`, with current values of the gateway. */
  handler(gateway: Pick<Gateways, 'count' | 'unreached' | 'fault'>): RequestListener;
}

const quick = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

/** Creates the metrics of one server; those of its files only with `config`. */
export function createMetrics(now: () => number, config?: Config): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const kinds = kindsOf(registry);
  if (config) measureInstallation(kinds, config);
  const counts = createCounts(kinds, now, config?.database === undefined);
  const events = kinds.counter('andromeda_log_events_total', 'level', 'event');
  for (const event of errorEvents) events.inc({ level: 'error', event }, 0);
  return {
    watch(log) {
      const at =
        (level: EventLevel) =>
        <Name extends EventName>(event: Name, fields: LogEvents[Name]) => {
          counts[event]?.(fields);
          if (level === 'warn' || level === 'error') events.inc({ level, event });
          log[level](event, fields);
        };
      return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
    },
    handler(gateway) {
      const { measured } = kinds;
      measured('andromeda_gateway_sessions', [], (it) => it.set(gateway.count()));
      measured('andromeda_gateway_up', [], (it) => it.set(gateway.fault === undefined ? 1 : 0));
      measured('andromeda_gateway_unreached', [], (it) => it.set(gateway.unreached.length));
      return async (request, response) => {
        if (request.method !== 'GET' || request.url !== '/metrics') {
          response.writeHead(404, { 'Content-Type': 'text/plain' }).end('Metrics are at GET /metrics.\n');
          return;
        }
        try {
          const text = await registry.metrics();
          response.writeHead(200, { 'Content-Type': registry.contentType }).end(text);
        } catch (error) {
          // A metric that fails must not end the service.
          const text = `The metrics cannot be collected: ${messageOf(error)}\n`;
          response.writeHead(500, { 'Content-Type': 'text/plain; charset=utf-8' }).end(text);
        }
      };
    },
  };
}

function createCounts(kinds: Kinds, now: () => number, leads: boolean): Counts {
  return {
    ...apiCounts(kinds),
    ...syncCounts(kinds, now),
    ...gatewayCounts(kinds),
    ...auditCounts(kinds),
    ...serverCounts(kinds, leads),
  };
}

/** Metrics of requests by people and programs, and of the service's own writes and ACME attempts. */
function apiCounts({ counter, histogram }: Kinds): Counts {
  const requests = counter('andromeda_http_requests_total', 'api', 'operation', 'status');
  const seconds = histogram('andromeda_http_request_seconds', quick, 'api', 'operation');
  const writes = histogram('andromeda_store_write_seconds', quick);
  const signIns = counter('andromeda_sign_ins_total', 'result');
  const attempts = counter('andromeda_acme_attempts_total', 'result');
  return {
    'http.request': ({ api, operation = 'none', status, ms }) => {
      requests.inc({ api, operation, status });
      seconds.observe({ api, operation }, ms / 1000);
    },
    'store.written': ({ ms }) => writes.observe(ms / 1000),
    'issuer.sign_in': () => signIns.inc({ result: 'done' }),
    'issuer.sign_in.refused': () => signIns.inc({ result: 'refused' }),
    'issuer.sign_in.throttled': () => signIns.inc({ result: 'throttled' }),
    'acme.obtained': () => attempts.inc({ result: 'done' }),
    'acme.failed': () => attempts.inc({ result: 'failed' }),
  };
}

const sessionSeconds = [1, 10, 60, 600, 3_600, 6 * 3_600, 24 * 3_600];

function gatewayCounts({ counter, histogram }: Kinds): Counts {
  const logins = counter('andromeda_gateway_logins_total', 'result', 'reason');
  const closed = counter('andromeda_gateway_sessions_closed_total', 'reason');
  const seconds = histogram('andromeda_gateway_session_seconds', sessionSeconds);
  const bytes = counter('andromeda_gateway_bytes_total', 'direction');
  const refused = counter('andromeda_gateway_connections_refused_total', 'reason');
  return {
    'gateway.connection.refused': ({ reason }) => refused.inc({ reason }),
    'gateway.connections.refused': ({ reason, connections }) => refused.inc({ reason }, connections),
    'gateway.login.accepted': () => logins.inc({ result: 'accepted', reason: '' }),
    'gateway.login.refused': ({ reason }) => logins.inc({ result: 'refused', reason }),
    'gateway.logins.refused': ({ reason, logins: more }) => logins.inc({ result: 'refused', reason }, more),
    'gateway.session.closed': ({ why, durationMs, bytesUp = 0, bytesDown = 0 }) => {
      // The part after a colon is about one case.
      closed.inc({ reason: why.split(':')[0] ?? '' });
      seconds.observe(durationMs / 1000);
      bytes.inc({ direction: 'up' }, bytesUp);
      bytes.inc({ direction: 'down' }, bytesDown);
    },
  };
}

function auditCounts({ gauge }: Kinds): Counts {
  // Without labels the metric would exist, with value 0, where there is no copy.
  const up = gauge('andromeda_audit_file_up', 'file');
  return {
    'audit.file.working': ({ file }) => up.set({ file }, 1),
    'audit.file.failed': ({ file }) => up.set({ file }, 0),
  };
}

function serverCounts({ gauge }: Kinds, leads: boolean): Counts {
  const servers = gauge('andromeda_servers');
  servers.set(1);
  const leader = gauge('andromeda_leader');
  leader.set(leads ? 1 : 0);
  const clock = gauge('andromeda_clock_difference_seconds');
  const former = gauge('andromeda_database_former_primaries');
  former.set(0);
  return {
    'servers.counted': ({ servers: count }) => servers.set(count),
    'database.former_primary': ({ primaries }) => former.set(primaries),
    'servers.clock': ({ differsMs }) => clock.set(differsMs / 1000),
    'leader.began': () => leader.set(1),
    'leader.lost': () => leader.set(0),
    'leader.left': () => leader.set(0),
  };
}

function measureInstallation({ measured }: Kinds, config: Config): void {
  const { dataDir } = config;
  const file = join(dataDir, 'andromeda.db');
  const sizeOf = (path: string) => statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  measured('andromeda_build_info', ['version', 'commit', 'built', 'node'], (gauge) => {
    const { commit = 'checkout', date = '' } = build ?? {};
    gauge.set({ version: manifest.version, commit, built: date, node: process.version }, 1);
  });
  measured('andromeda_database_bytes', [], (gauge) => gauge.set(sizeOf(file)));
  measured('andromeda_database_wal_bytes', [], (gauge) => gauge.set(sizeOf(`${file}-wal`)));
  measured('andromeda_data_free_bytes', [], (gauge) => {
    const { bavail, bsize } = statfsSync(dataDir);
    gauge.set(bavail * bsize);
  });
  measured('andromeda_certificate_end_timestamp_seconds', ['listener'], (gauge) => {
    for (const { setting, endsAt } of listCertificates(config))
      gauge.set({ listener: setting.replace('.tls', '') }, endsAt / 1000);
  });
  measured('andromeda_backup_last_timestamp_seconds', [], (gauge) =>
    gauge.set(Date.parse(readLastBackup(dataDir)?.at ?? '1970-01-01T00:00:00Z') / 1000),
  );
  measured('andromeda_backup_failures', [], (gauge) => gauge.set(readBackupFailure(dataDir)?.failures ?? 0));
}

const slow = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];

type ClusterSide = Pick<LogEvents['sync.released'], 'cluster' | 'side'>;

/** Metrics of the sync loop. Ages are per side of each cluster, and grow while it sends no event. */
function syncCounts(kinds: Kinds, now: () => number): Counts {
  const passSeconds = kinds.histogram('andromeda_sync_pass_seconds', slow, 'outcome');
  const convergenceSeconds = kinds.histogram('andromeda_sync_convergence_seconds', slow);
  const passed = ages(kinds, 'andromeda_sync_lag_seconds', now);
  const observed = ages(kinds, 'andromeda_sync_observed_age_seconds', now);
  const behind = ages(kinds, 'andromeda_sync_unapplied_seconds', now);
  const waitingSince = ages(kinds, 'andromeda_sync_waiting_hosts_seconds', now);
  const waitingHosts = kinds.gauge('andromeda_sync_waiting_hosts', 'cluster', 'side');
  const nodesDown = kinds.gauge('andromeda_login_nodes_down', 'cluster');
  const forget = ({ cluster, side }: ClusterSide) => {
    for (const one of [passed, observed, behind, waitingSince]) one.delete({ cluster, side });
    waitingHosts.remove({ cluster, side });
    if (side === 'slurm') nodesDown.remove({ cluster });
  };
  return {
    'sync.changed': (about) => behind.begin(about),
    'sync.observed': ({ waiting, cluster, side }) => {
      observed.set({ cluster, side }, now());
      waitingHosts.set({ cluster, side }, waiting);
      if (waiting === 0) waitingSince.set({ cluster, side }, undefined);
      else waitingSince.begin({ cluster, side });
    },
    'sync.login_nodes': ({ cluster, down }) => nodesDown.set({ cluster }, down),
    'sync.passed': ({ ms, behindMs, ...about }) => {
      passed.set(about, now());
      behind.set(about, behindMs === 0 ? undefined : now() - behindMs);
      passSeconds.observe({ outcome: 'done' }, ms / 1000);
    },
    'sync.failed': ({ ms, behindMs, ...about }) => {
      // A side that never succeeded has been lagging since its first attempt.
      passed.begin(about);
      observed.begin(about);
      behind.set(about, behindMs === 0 ? undefined : now() - behindMs);
      passSeconds.observe({ outcome: 'failed' }, ms / 1000);
    },
    'sync.converged': ({ ms }) => convergenceSeconds.observe(ms / 1000),
    'sync.released': forget,
    // The next leader reports them.
    'sync.left': forget,
  };
}

/** A gauge of ages by cluster and side, computed at each scrape. */
function ages({ measured }: Kinds, name: MetricName, now: () => number) {
  const since = new Map<string, ClusterSide & { at: number | undefined }>();
  measured(name, ['cluster', 'side'], (it) => {
    for (const { cluster, side, at } of since.values())
      it.set({ cluster, side }, at === undefined ? 0 : Math.max(0, now() - at) / 1000);
  });
  const keyOf = ({ cluster, side }: ClusterSide) => `${cluster}/${side}`;
  return {
    /** Sets the start of the age, in ms since 1970; undefined: age 0. */
    set({ cluster, side }: ClusterSide, at: number | undefined) {
      since.set(keyOf({ cluster, side }), { cluster, side, at });
    },
    begin({ cluster, side }: ClusterSide) {
      const at = since.get(keyOf({ cluster, side }))?.at ?? now();
      since.set(keyOf({ cluster, side }), { cluster, side, at });
    },
    delete: (about: ClusterSide) => void since.delete(keyOf(about)),
  };
}
