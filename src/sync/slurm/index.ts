/**
 * The Slurm driver: a site's own cluster, managed over SSH (or on this machine) with nothing installed there. Each host gets
 * its whole part as one idempotent script and answers with what is in force, so that an observation or a change is one round
 * trip a host. A host itself records what the driver put there; nothing that matters is only in memory here.
 *
 * observe: all hosts without a report from a change that has just ended, in parallel → report.ts
 * apply:   all hosts, in parallel (accounts, scripts, associations) → controller (configuration on trial)
 *            → other hosts' configuration → login, controller, accounting restart → compute nodes, one at a time: the first
 * that is worse than before rolls the configuration back
 *
 * Hosts are independent: a script on a slow host goes on in the background, the other hosts go on without it, and the report
 * names it (`waiting`) until it has the list.
 */
import { rolloutForPeople } from '../../domain/slurm/settings.ts';
import type { SlurmDriver } from '../driver.ts';
import { applyManifest } from './apply.ts';
import { SlurmCluster, type SlurmOptions } from './cluster.ts';
import { releasedRows } from './desired.ts';
import { cleanLeftHosts, releaseHost, releaseLeftHosts } from './left-hosts.ts';
import { Observer } from './observe.ts';
import { Progress } from './progress.ts';

export { openHostRecord } from './host-record.ts';

export interface RealSlurmDriver extends SlurmDriver {
  readonly roundTrips: number;
}

/** Changes that come together are applied together, because a restart ends everyone's session. */
const gatherMs = { restart: 2_000, live: 200 };

export function createSlurmDriver(options: SlurmOptions): RealSlurmDriver {
  const cluster = new SlurmCluster(options);
  const progress = new Progress(options.name, options.log);
  const observer = new Observer(cluster, progress);
  return {
    followsSettings: false,
    gatherMs: gatherMs[rolloutForPeople(options.settings)],
    get roundTrips() {
      return cluster.shell.runs;
    },
    observe: (signal, superseded) => observer.report(signal, superseded),
    apply: (manifest, signal, superseded) =>
      progress.during(async () => {
        await applyManifest(cluster, progress, manifest, { signal, superseded });
        await cleanLeftHosts(cluster, manifest, signal, superseded);
      }),
    async release(signal, adopted = {}) {
      await observer.observeHosts(signal);
      const rows = releasedRows(adopted);
      const [controller, ...others] = cluster.hosts();
      // The scripts are removed last, after Slurm's configuration names none of them any more.
      const left = controller ? await releaseHost(cluster, controller, signal, rows) : [];
      if (left.length === 0) {
        const messages = await Promise.all(others.map((host) => releaseHost(cluster, host, signal, rows)));
        left.push(...messages.flat());
      }
      left.push(...(await releaseLeftHosts(cluster, signal, rows)));
      if (left.length > 0) throw new Error(left.slice(0, 5).join('; '));
    },
    close: () => cluster.close(),
  };
}
