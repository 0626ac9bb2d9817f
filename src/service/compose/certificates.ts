/** A part of the composition root: expiry of the listeners' certificates, and those that the service obtains by itself. */
import { setTimeout as sleep } from 'node:timers/promises';
import { acmeSecrets } from '../../domain/key-rotation.ts';
import type { Logger } from '../../lib/log.ts';
import type { Store } from '../../store/engine/index.ts';
import type { Secrets } from '../../store/servers/secrets.ts';
import { readState } from '../certificates/files.ts';
import type { Acme, AnsweredChallenge, OtherServers } from '../certificates/index.ts';
import type { CertificateOfAll } from '../certificates/renewal.ts';
import { listCertificates, problemOf, requireCertificates } from '../config/certificates.ts';
import type { Config } from '../config/index.ts';
import { listHttpListeners } from '../config/listeners.ts';
import type { Parts } from './parts.ts';
import type { Peers } from './peers/peers.ts';

const dayMs = 86_400_000;
/** Days before the end at which a warning is logged; 0: at the end. */
const warnDays = [30, 7, 1, 0];
const intervalMs = 3_600_000;

/**
 * Logs warnings before a listener's certificate ends, and when it has ended: checks now and every hour. Returns a
 * function that stops. Throws `invalid_request` for a certificate that its listener cannot use.
 */
export function watchCertificates(
  config: Config,
  log: Logger,
  now: () => number,
  everyMs = intervalMs,
): () => void {
  requireCertificates(config);
  /** Number of the days above that had passed at the last warning, by setting. */
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

/** The fault of the last attempt to obtain a certificate; undefined where that succeeded. */
export function lastFailureOfAcme(dataDir: string): { failure: string; notBefore: string } | undefined {
  const { failure, notBefore } = readState(dataDir);
  return failure === undefined || notBefore === undefined ? undefined : { failure, notBefore };
}

/** Undefined where the configuration has no ACME. Nothing is ordered before its `begin`. */
export async function openAcme(
  { acme, dataDir, ...config }: Config,
  { store, peers, keys, log, now }: Pick<Parts, 'store' | 'peers' | 'keys' | 'log' | 'now'>,
): Promise<Acme | undefined> {
  if (!acme) return undefined;
  const { createAcme } = await import('../certificates/index.ts');
  const urls = listHttpListeners(config).flatMap(([, { tls, url }]) => (tls && 'acme' in tls ? [url] : []));
  const origins = urls.map((url) => new URL(url).origin);
  const others = keys.secrets && othersOf(store, peers, keys.secrets);
  return createAcme({ ...acme, dataDir, origins, log, now, others });
}

const topic = 'acme';
/** The message reaches the other servers within milliseconds, but the authority may connect at once. */
const announceMs = 1_000;

function othersOf({ messages }: Store, peers: Peers, secrets: Secrets): OtherServers {
  return {
    certificate: certificateOfAll(peers, secrets),
    async announce(challenge) {
      await messages.send(topic, challenge);
      await sleep(announceMs);
    },
    hear: (listener) => messages.on(topic, (body) => listener(body as AnsweredChallenge)),
  };
}

/** The shared account and certificate, with their keys, as secrets in the database. The leader orders. */
function certificateOfAll(peers: Pick<Peers, 'lead'>, secrets: Secrets): CertificateOfAll {
  const { account, certificate } = acmeSecrets;
  return {
    async find() {
      const text = await secrets.find(certificate);
      const { subject, pem } = JSON.parse(text ?? '{}') as { subject?: string; pem?: string };
      return subject === undefined || pem === undefined
        ? undefined
        : { subject, pem: Buffer.from(pem, 'latin1') };
    },
    ordering() {
      const { lead } = peers;
      return (
        lead && {
          async account(make) {
            const text = async () => (await make()).toString('latin1');
            return Buffer.from(await secrets.findOrAdd(account, text, lead.store), 'latin1');
          },
          async keep({ subject, pem }) {
            const text = JSON.stringify({ subject, pem: pem.toString('latin1') });
            await secrets.change(certificate, () => text, lead.store);
          },
        }
      );
    },
  };
}
