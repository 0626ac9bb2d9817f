/** Says in the log when a listener's certificate is about to end, and that it has ended. */
import type { Logger } from '../../lib/log.ts';
import { type ListenerCertificate, listCertificates, requireCertificates } from '../config/certificates.ts';
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
      // One that is renewed has a third of its life left then. Where a quarter is left, that has failed for long.
      const quarter = (one.endsAt - one.beginsAt) / 4;
      const days = warnDays.filter((count) => !one.isRenewed || count * dayMs < quarter);
      const passed = days.filter((count) => one.endsAt - now() <= count * dayMs).length;
      if (passed > (said.get(one.setting) ?? 0)) say(one, now(), log);
      said.set(one.setting, passed);
    }
  };
  check();
  const timer = setInterval(check, everyMs).unref();
  return () => clearInterval(timer);
}

function say({ setting, file, endsAt, isRenewed }: ListenerCertificate, now: number, log: Logger): void {
  const fields = { setting, file, endsAt: new Date(endsAt).toISOString() };
  const advice = isRenewed
    ? 'It could not be renewed: acme.failed in the log says why.'
    : 'Renew it, and reload the service.';
  if (endsAt <= now) {
    const message = `The certificate in ${file} has ended: nobody trusts ${setting} any more. ${advice}`;
    log.error('certificate.ended', { ...fields, message });
    return;
  }
  const days = Math.floor((endsAt - now) / dayMs);
  const span = days < 1 ? 'less than a day' : days === 1 ? '1 day' : `${days} days`;
  const message = `The certificate in ${file} (${setting}) ends in ${span}. ${advice}`;
  log.warn('certificate.ending', { ...fields, message });
}
