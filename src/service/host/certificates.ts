/** The TLS certificates of the listeners: when each ends, and whether the service renews those that it obtains by itself. */
import { lastFailureOfAcme } from '../compose/acme.ts';
import { type ListenerCertificate, listCertificates, missingCertificate } from '../config/certificates.ts';
import type { Config } from '../config/index.ts';
import { type Finding, ok, warn, wrong } from './checks/findings.ts';

const about = 'certificate';
const dayMs = 86_400_000;

export function* checkCertificates(config: Config): Generator<Finding> {
  for (const one of listCertificates(config)) yield checkCertificate(one, config, Date.now());
  const missing = missingCertificate(config);
  if (missing !== undefined) yield warn(about, missing);
  const last = config.acme && lastFailureOfAcme(config.dataDir);
  if (last) yield warn(about, `${last.failure} It is tried again at ${last.notBefore}.`);
}

function checkCertificate(one: ListenerCertificate, config: Config, now: number): Finding {
  const { setting, file, fault, beginsAt, endsAt, otherHost, names, isRenewed } = one;
  if (fault !== undefined) return wrong(about, `${setting}: ${fault}`);
  const at = `${setting}: ${file}`;
  const day = (time: number) => new Date(time).toISOString().slice(0, 10);
  const days = Math.floor((endsAt - now) / dayMs);
  const advice = isRenewed ? 'The service could not renew it so far.' : 'Renew it, and reload the service.';
  if (endsAt <= now) return wrong(about, `${at} ended on ${day(endsAt)}. ${advice}`);
  if (beginsAt > now)
    return wrong(about, `${at} is good from ${day(beginsAt)} on only. Is the clock of this machine right?`);
  if (otherHost !== undefined) {
    const text = `${at} is for ${names}, and not for ${otherHost}, which the url names.`;
    // A proxy in front may have another, and the service is about to obtain one.
    return config.trustedProxies.length > 0 || isRenewed ? warn(about, text) : wrong(about, text);
  }
  const text = `${at} ends on ${day(endsAt)}, in ${days} ${days === 1 ? 'day' : 'days'}.`;
  const isLate = isRenewed ? endsAt - now < (endsAt - beginsAt) / 4 : days < 30;
  return isLate ? warn(about, `${text} ${advice}`) : ok(about, `${text} It is for ${names}.`);
}
