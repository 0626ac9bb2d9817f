/** The help texts of all metrics, the kinds of Prometheus metrics, and the type of event counters. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { EventName, LogEvents } from '../../../lib/log.ts';

export type Counts = { [Name in EventName]?: (fields: LogEvents[Name]) => void };

const help = {
  andromeda_acme_attempts_total: 'Attempts to obtain a TLS certificate (ACME), by result: done, failed',
  andromeda_audit_file_up: 'Whether the copy of the audit trail can be written (1) or not (0)',
  andromeda_backup_failures:
    'Attempts to make a backup, or to run the command after it, that failed since all went well',
  andromeda_backup_last_timestamp_seconds:
    'When the last backup was made, in seconds since 1970; 0 where none was',
  andromeda_build_info: 'The program: always 1',
  andromeda_certificate_end_timestamp_seconds:
    'When a listener’s TLS certificate ends, in seconds since 1970',
  andromeda_clock_difference_seconds:
    'How far the clock of the database that servers share is ahead of this host’s, at least',
  andromeda_data_free_bytes: 'Space left on the disk of the data directory',
  andromeda_database_bytes: 'Size of the database file',
  andromeda_database_former_primaries:
    'PostgreSQL primaries that take writes and are not served from, as another host has taken over',
  andromeda_database_wal_bytes: 'Size of the database’s write-ahead log',
  andromeda_gateway_bytes_total: 'Bytes of SSH sessions that ended, by direction',
  andromeda_gateway_connections_refused_total:
    'Connections to the SSH gateway that were refused before a login, by reason',
  andromeda_gateway_logins_total: 'Logins at the SSH gateway, by result and, where refused, reason',
  andromeda_gateway_session_seconds: 'How long SSH sessions lasted',
  andromeda_gateway_sessions: 'SSH sessions that are open',
  andromeda_gateway_sessions_closed_total: 'SSH sessions that ended, by why',
  andromeda_gateway_unreached:
    'Gateway processes that do not answer, or have not confirmed a revocation or another change',
  andromeda_gateway_up: 'Whether a gateway takes SSH connections (1) or not (0), as far as the service knows',
  andromeda_http_request_seconds: 'Time from the request to the end of its answer',
  andromeda_http_requests_total:
    'Requests answered, by API, operation and status (499: the caller went away)',
  andromeda_leader: 'Whether this server does what one of those that share the database does for all (1)',
  andromeda_log_events_total: 'Warnings and errors in the log, by event',
  andromeda_login_nodes_down:
    'Login nodes that the last report of a cluster has as down: their sshd does not answer',
  andromeda_servers: 'Servers that share the database and are there, this one among them',
  andromeda_sign_ins_total:
    'Sign-ins at the embedded issuer, by result: done, refused (a wrong email or password), throttled',
  andromeda_store_write_seconds: 'Time of a write transaction, the wait for the ones before it included',
  andromeda_sync_convergence_seconds: 'Time from a change until a cluster has applied it',
  andromeda_sync_lag_seconds: 'Time since the last pass over a side of a cluster that went well',
  andromeda_sync_observed_age_seconds:
    'Age of the last report of a side of a cluster, on which logins depend',
  andromeda_sync_pass_seconds: 'Time of one pass over a cluster, by outcome',
  andromeda_sync_unapplied_seconds:
    'How long the oldest change waits that a side of a cluster has not applied; 0 where all are',
  andromeda_sync_waiting_hosts:
    'Hosts of a cluster that have not confirmed the newest access list, 50 at most',
  andromeda_sync_waiting_hosts_seconds:
    'How long there have been hosts that have not confirmed the newest access list; 0 where all have',
};
export type MetricName = keyof typeof help;
export type Kinds = ReturnType<typeof kindsOf>;

export function kindsOf(registry: Registry) {
  const common = (name: MetricName, labelNames: readonly string[]) => ({
    name,
    help: help[name],
    labelNames,
    registers: [registry],
  });
  return {
    counter: (name: MetricName, ...labels: string[]) => new Counter(common(name, labels)),
    histogram: (name: MetricName, buckets: number[], ...labels: string[]) =>
      new Histogram({ ...common(name, labels), buckets }),
    gauge: (name: MetricName, ...labels: string[]) => new Gauge(common(name, labels)),
    /** A gauge that is reset and set again at each scrape. */
    measured(name: MetricName, labels: string[], measure: (gauge: Gauge) => void) {
      return new Gauge({
        ...common(name, labels),
        collect() {
          this.reset();
          measure(this);
        },
      });
    },
  };
}

export const errorEvents: readonly EventName[] = [
  'access.check.failed',
  'access.review.failed',
  'acme.failed',
  'audit.file.failed',
  'audit.sign.failed',
  'backup.failed',
  'certificate.ended',
  'clients.failed',
  'console.events.failed',
  'console.request.failed',
  'database.former_primary',
  'database.timeline.failed',
  'database.went_back',
  'erasure.failed',
  'gateway.connection.failed',
  'gateway.keys.unasked',
  'gateway.listen.failed',
  'gateway.process.ended',
  'gateway.process.failed',
  'gateway.process.fault',
  'gateway.process.foreign',
  'gateway.process.unreached',
  'gateway.recheck.failed',
  'gateway.records.failed',
  'gateway.records.lost',
  'gateway.sessions.failed',
  'groups.apply.failed',
  'http.failed',
  'http.unready',
  'issuer.failed',
  'issuer.request.failed',
  'leader.end.failed',
  'login_node_crashed',
  'login_node_exited',
  'login_node_listen_error',
  'login_node_process_error',
  'login_node_session_failed',
  'login_node_sessions_left',
  'login_node_start_failed',
  'login_node_stderr',
  'permissions.end.failed',
  'process.failed',
  'retention.failed',
  'secrets.unreadable',
  'serve.failed',
  'serve.left',
  'serve.notify.failed',
  'serve.reload.refused',
  'servers.failed',
  'sweep.failed',
  'sync.notice.failed',
  'sync.sweep.failed',
];
