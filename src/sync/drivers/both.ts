/**
 * A cluster that runs Slurm and Kubernetes: a driver for each, and one report. Each fails, and is tried again, for
 * itself; what one of them last said counts for as long as any report does.
 */
import { observationFreshnessMs } from '../../domain/access-list.ts';
import { mergeReports } from '../../domain/both-reports.ts';
import type { Report } from '../../domain/manifest.ts';
import type { Logger } from '../../log.ts';
import type { Driver } from '../driver.ts';
import { retryDelay } from '../loop.ts';

export interface BothOptions {
  name: string;
  slurm: Driver;
  kubernetes: Driver;
  /** Whether there is a report on record, of a driver before this one. */
  hasReported: boolean;
  log: Logger;
  now(): number;
}

export function createBothDriver(options: BothOptions): Driver {
  const { hasReported, now } = options;
  const slurm = createHalf('slurm', options.slurm, options);
  const kubernetes = createHalf('kubernetes', options.kubernetes, options);
  const startedAt = now();

  return {
    ...(options.slurm.gatherMs === undefined ? {} : { gatherMs: options.slurm.gatherMs }),
    async permit(signal) {
      await kubernetes.work(async (driver) => driver.permit?.(signal), signal);
    },
    async observe(signal) {
      await Promise.all([slurm.look(signal), kubernetes.look(signal)]);
      const [ofSlurm, ofKubernetes] = [slurm.report(), kubernetes.report()];
      // What is on record of people's accounts is good for a while yet, and must not be taken for gone.
      const isRecordGood = hasReported && now() - startedAt < observationFreshnessMs;
      if (!ofSlurm && (isRecordGood || !ofKubernetes))
        throw new Error(slurm.words() ?? 'Slurm says nothing.');
      const report = mergeReports(ofSlurm, ofKubernetes);
      return {
        ...report,
        failure: report.failure ?? slurm.words(),
        kubernetesFailure: report.kubernetesFailure ?? kubernetes.words() ?? undefined,
      };
    },
    async apply(manifest, signal) {
      const apply = (driver: Driver) => driver.apply(manifest, signal);
      await Promise.all([slurm.work(apply, signal), kubernetes.work(apply, signal)]);
    },
    async release(signal) {
      const drivers = [options.slurm, options.kubernetes];
      const results = await Promise.allSettled(drivers.map((driver) => driver.release(signal)));
      signal.throwIfAborted();
      const left = results.flatMap((result) =>
        result.status === 'rejected' ? [wordsOf(result.reason)] : [],
      );
      if (left.length > 0) throw new Error(left.join(' '));
    },
    async close() {
      await Promise.all([options.slurm.close(), options.kubernetes.close()]);
    },
  };
}

function createHalf(part: string, driver: Driver, options: BothOptions) {
  const { now } = options;
  const looking = createTries(part, options);
  const working = createTries(part, options);
  let last: { report: Report; at: number } | undefined;
  return {
    work: (body: (driver: Driver) => Promise<void>, signal: AbortSignal) =>
      working.run(() => body(driver), signal),
    look: (signal: AbortSignal) =>
      looking.run(async () => {
        last = { report: await driver.observe(signal), at: now() };
      }, signal),
    /** What it last said, for as long as that counts. */
    report: () => (last && now() - last.at <= observationFreshnessMs ? last.report : undefined),
    /** Why it fails; null when it does not. */
    words: () => looking.words() ?? working.words(),
  };
}

/** Does something that may fail, and after that not again for a while. */
function createTries(part: string, { name, log, now }: BothOptions) {
  let failures = 0;
  let notBefore = 0;
  let words: string | null = null;
  return {
    words: () => words,
    async run(body: () => Promise<void>, signal: AbortSignal): Promise<void> {
      if (now() < notBefore) return;
      try {
        await body();
        failures = 0;
        words = null;
      } catch (error) {
        // Out of time is this one's trouble; the end of the service is everyone's.
        if (signal.aborted && (signal.reason as Error).name !== 'TimeoutError') throw error;
        words = wordsOf(error);
        failures += 1;
        const retryMs = retryDelay(failures, Math.random());
        notBefore = now() + retryMs;
        log.warn('sync.side.failed', { cluster: name, side: part, error, failures, retryMs });
      }
    },
  };
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
