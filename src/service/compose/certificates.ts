/** Says in the log when a listener's certificate is about to end, and that it has ended. */
import type { Logger } from '../../lib/log.ts';
import { listCertificates, problemOf, requireCertificates } from '../config/certificates.ts';
import type { Config } from '../config/index.ts';

const dayMs = 86_400_000;
/** So many days before the end, and then at the end itself, it is said once more. */
const warnDays = [30, 7, 1, 0];
const intervalMs = 3_600_000;

/**
 * Says at once what is to be said, and looks again every hour. Returns how to stop. Throws `invalid_request` for a certificate
 * that its listener cannot use.
 */
export function watchCertificates(
  config: Config,
  log: Logger,
  now: () => number,
  everyMs = intervalMs,
): () => void {
  requireCertificates(config);
  /** How many of the days above had come when it was last said, by setting. */
  const said = new Map<string, number>();
  const check = () => {
    for (const one of listCertificates(config)) {
      const { setting, file, endsAt } = one;
      const leftMs = endsAt - now();
      const problem = problemOf(one, now());
      const passed = problem ? warnDays.filter((count) => leftMs <= count * dayMs).length : 0;
      if (problem && passed > (said.get(setting) ?? 0)) {
        const message = `${problem.message} ${problem.action}`;
        const fields = { setting, file, endsAt: new Date(endsAt).toISOString(), message };
        if (leftMs <= 0) log.error('certificate.ended', fields);
        else log.warn('certificate.ending', fields);
      }
      said.set(setting, passed);
    }
  };
  check();
  const timer = setInterval(check, everyMs).unref();
  return () => clearInterval(timer);
}
