/** A part of the composition root: certificates that the service obtains by itself. */
import { setTimeout as sleep } from 'node:timers/promises';
import { acmeSecrets } from '../../domain/key-rotation.ts';
import type { Leases } from '../../store/servers/leases.ts';
import type { Secrets } from '../../store/servers/secrets.ts';
import { readState } from '../certificates/files.ts';
import type { Acme, AnsweredChallenge, OtherServers } from '../certificates/index.ts';
import type { SharedCertificate } from '../certificates/renewal.ts';
import type { Config } from '../config/index.ts';
import { listHttpListeners } from '../config/listeners.ts';
import type { Parts } from './parts.ts';
import type { Peers } from './peers/peers.ts';

/** What went wrong when a certificate was tried for last; undefined where that went well. */
export function lastFailureOfAcme(dataDir: string): { failure: string; notBefore: string } | undefined {
  const { failure, notBefore } = readState(dataDir);
  return failure === undefined || notBefore === undefined ? undefined : { failure, notBefore };
}

/** Undefined where the configuration has none. Nothing is asked for before its `begin`. */
export async function openAcme(
  { acme, dataDir, ...config }: Config,
  { peers, keys, log, now }: Pick<Parts, 'peers' | 'keys' | 'log' | 'now'>,
): Promise<Acme | undefined> {
  if (!acme) return undefined;
  const { createAcme } = await import('../certificates/index.ts');
  const urls = listHttpListeners(config).flatMap(([, { tls, url }]) => (tls && 'acme' in tls ? [url] : []));
  const origins = urls.map((url) => new URL(url).origin);
  const others = keys.secrets && othersOf(peers, keys.secrets);
  return createAcme({ ...acme, dataDir, origins, log, now, others });
}

const topic = 'acme';
/** The message reaches the other servers within milliseconds, but the authority may connect at once. */
const announceMs = 1_000;

function othersOf({ send, on, leases }: Peers, secrets: Secrets): OtherServers {
  return {
    shared: sharedCertificate(secrets),
    async announce(challenge) {
      await send(topic, challenge);
      await sleep(announceMs);
    },
    hear: (listener) => on(topic, (body) => listener(body as AnsweredChallenge)),
    oneAtATime: (work, signal) => whileHeld(leases, topic, work, signal),
  };
}

/** The account and the certificate, with their keys, among the secrets of the database. */
function sharedCertificate(secrets: Secrets): SharedCertificate {
  const { account, certificate } = acmeSecrets;
  return {
    account: async (make) =>
      Buffer.from(await secrets.findOrAdd(account, async () => (await make()).toString('latin1')), 'latin1'),
    async find() {
      const text = await secrets.find(certificate);
      const { subject, pem } = JSON.parse(text ?? '{}') as { subject?: string; pem?: string };
      return subject === undefined || pem === undefined
        ? undefined
        : { subject, pem: Buffer.from(pem, 'latin1') };
    },
    async keep({ subject, pem }) {
      await secrets.change(certificate, () => JSON.stringify({ subject, pem: pem.toString('latin1') }));
    },
  };
}

/** Runs `work` once, as soon as this server has the lease of that name, and leaves that then. */
async function whileHeld<T>(
  leases: Leases,
  name: string,
  work: () => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const late = () => reject(signal.reason);
  signal.addEventListener('abort', late);
  let isBegun = false;
  const leave = leases.want(name, {
    begin() {
      if (isBegun || signal.aborted) return;
      isBegun = true;
      work().then(resolve, reject);
    },
    // A second order at the same time does no harm.
    async end() {},
  });
  try {
    return await promise;
  } finally {
    signal.removeEventListener('abort', late);
    await leave();
  }
}
