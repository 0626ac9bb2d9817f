/** Metrics of the sync loop. Ages are per side of each cluster, and grow while it sends nothing. */
import type { Registry } from 'prom-client';
import type { LogEvents } from '../../../lib/log.ts';
import { type Counts, gauge, histogram } from './metric-kinds.ts';

const slow = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];

type Side = Pick<LogEvents['sync.released'], 'cluster' | 'side'>;

export function syncCounts(registry: Registry, now: () => number): Counts {
  const passSeconds = histogram(
    registry,
    'andromeda_sync_pass_seconds',
    'Time of one pass over a cluster, by outcome',
    slow,
    ['outcome'],
  );
  const convergenceSeconds = histogram(
    registry,
    'andromeda_sync_convergence_seconds',
    'Time from a change until a cluster has applied it',
    slow,
  );
  const passed = ages(
    registry,
    'andromeda_sync_lag_seconds',
    'Time since the last pass over a side of a cluster that went well',
    now,
  );
  const observed = ages(
    registry,
    'andromeda_sync_observed_age_seconds',
    'Age of the last report of a side of a cluster, on which logins depend',
    now,
  );
  const behind = ages(
    registry,
    'andromeda_sync_unapplied_seconds',
    'How long the oldest change waits that a side of a cluster has not applied; 0 where all are',
    now,
  );
  const hosts = hostGauges(registry, now);
  const forget = ({ cluster, side }: Side) => {
    for (const one of [passed, observed, behind]) one.delete({ cluster, side });
    hosts.forget({ cluster, side });
  };
  return {
    'sync.changed': (about) => behind.begin(about),
    'sync.observed': ({ waiting, ...about }) => {
      observed.set(about, now());
      hosts.wait(about, waiting);
    },
    'sync.login_nodes': hosts.nodes,
    'sync.passed': ({ ms, behindMs, ...about }) => {
      passed.set(about, now());
      behind.set(about, behindMs === 0 ? undefined : now() - behindMs);
      passSeconds.observe({ outcome: 'done' }, ms / 1000);
    },
    'sync.failed': ({ ms, behindMs, ...about }) => {
      // One that never went well has been lagging since it was first tried.
      passed.begin(about);
      observed.begin(about);
      behind.set(about, behindMs === 0 ? undefined : now() - behindMs);
      passSeconds.observe({ outcome: 'failed' }, ms / 1000);
    },
    'sync.converged': ({ ms }) => convergenceSeconds.observe(ms / 1000),
    'sync.released': forget,
    // The server that looks after it now has them.
    'sync.left': forget,
  };
}

/** Of the hosts of a cluster: login nodes that are down, and those that have not confirmed the newest list. */
function hostGauges(registry: Registry, now: () => number) {
  const nodesDown = gauge(
    registry,
    'andromeda_login_nodes_down',
    'Login nodes that the last report of a cluster has as down: their sshd does not answer',
    ['cluster'],
  );
  const waitingHosts = gauge(
    registry,
    'andromeda_sync_waiting_hosts',
    'Hosts of a cluster that have not confirmed the newest access list, 50 at most',
    ['cluster', 'side'],
  );
  const waitingSince = ages(
    registry,
    'andromeda_sync_waiting_hosts_seconds',
    'How long there have been hosts that have not confirmed the newest access list; 0 where all have',
    now,
  );
  return {
    nodes: ({ cluster, down }: LogEvents['sync.login_nodes']) => nodesDown.set({ cluster }, down),
    wait({ cluster, side }: Side, count: number) {
      waitingHosts.set({ cluster, side }, count);
      if (count === 0) waitingSince.set({ cluster, side }, undefined);
      else waitingSince.begin({ cluster, side });
    },
    forget({ cluster, side }: Side) {
      waitingHosts.remove({ cluster, side });
      waitingSince.delete({ cluster, side });
      if (side === 'slurm') nodesDown.remove({ cluster });
    },
  };
}

/** A gauge of ages by cluster and side, computed whenever it is asked for. */
function ages(registry: Registry, name: string, help: string, now: () => number) {
  const since = new Map<string, Side & { at: number | undefined }>();
  gauge(registry, name, help, ['cluster', 'side'], (it) => {
    it.reset();
    for (const { cluster, side, at } of since.values())
      it.set({ cluster, side }, at === undefined ? 0 : Math.max(0, now() - at) / 1000);
  });
  const keyOf = ({ cluster, side }: Side) => `${cluster}/${side}`;
  return {
    /** Sets since when, in ms since 1970; undefined: not at all. */
    set({ cluster, side }: Side, at: number | undefined) {
      since.set(keyOf({ cluster, side }), { cluster, side, at });
    },
    /** From now on, unless it has begun. */
    begin({ cluster, side }: Side) {
      const at = since.get(keyOf({ cluster, side }))?.at ?? now();
      since.set(keyOf({ cluster, side }), { cluster, side, at });
    },
    delete: (about: Side) => void since.delete(keyOf(about)),
  };
}
