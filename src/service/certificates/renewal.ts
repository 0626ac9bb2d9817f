/**
 * The schedule of orders: at once where there is no certificate, at two thirds of its life, and later after a
 * failure. Of several servers behind the same names, one orders, and the others take the certificate from it.
 */
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../../lib/error-message.ts';
import { retryDelay } from '../../lib/limits.ts';
import type { Logger } from '../../lib/log.ts';
import { type Rounds, startRounds } from '../../lib/rounds.ts';
import {
  loadAccountKey,
  parseCertificate,
  readCertificate,
  readState,
  writeCertificate,
  writeState,
} from './files.ts';
import { OrderError } from './order.ts';

export interface RenewalOptions {
  dataDir: string;
  directory: string;
  hosts: readonly string[];
  log: Logger;
  now(): number;
  retryMs?: (failures: number) => number;
  order(account: (make: () => Promise<Buffer>) => Promise<Buffer>, signal: AbortSignal): Promise<Buffer>;
  onObtained(pem: Buffer): void;
}

const attemptMs = 180_000;
/** Checked again at this interval, as the clock may be set meanwhile. */
const checkMs = 3_600_000;

/** Starts to obtain certificates that are due. Woken where the time of day has changed. */
export function startRenewal(options: RenewalOptions): Rounds {
  const { dataDir, directory, hosts, log, now, order, onObtained } = options;
  // Another authority, or other names, need another certificate, and do not wait for earlier failures.
  const names = JSON.stringify([directory, hosts]);
  const subject = createHash('sha256').update(names).digest('hex').slice(0, 16);
  const random = Math.random();

  function dueAt(): number {
    const certificate = readCertificate(dataDir);
    const { obtainedFor, attemptedFor, notBefore = '' } = readState(dataDir);
    const renewal = certificate && obtainedFor === subject ? renewalAt(certificate, random) : 0;
    const waits = attemptedFor === subject ? Date.parse(notBefore) : 0;
    return Math.max(renewal, waits || 0);
  }

  async function attempt(stopping: AbortSignal): Promise<void> {
    const limit = AbortSignal.any([stopping, AbortSignal.timeout(attemptMs)]);
    let pem: Buffer;
    try {
      pem = await order((make) => loadAccountKey(dataDir, make), limit);
      parseCertificate(pem);
    } catch (error) {
      if (!stopping.aborted) noteFailure(options, subject, error);
      return;
    }
    if (stopping.aborted) return;
    writeCertificate(dataDir, pem);
    writeState(dataDir, { obtainedFor: subject });
    onObtained(pem);
    const endsAt = new Date(parseCertificate(pem).endsAt).toISOString();
    const message = `There is a new certificate for ${hosts.join(', ')}, until ${endsAt}.`;
    log.info('acme.obtained', { hosts, endsAt, message });
  }

  const round = async (stopping: AbortSignal) => {
    if (dueAt() <= now()) await attempt(stopping);
    return Math.min(Math.max(0, dueAt() - now()), checkMs);
  };
  // Such as a full disk, on which not even the failure could be noted.
  const onFault = (error: unknown) => {
    const retryAt = new Date(now() + checkMs).toISOString();
    const message = `No certificate could be kept: ${oneLine(error)}.`;
    log.error('acme.failed', { hosts, failures: 1, retryAt, message });
  };
  return startRounds(round, { everyMs: checkMs, onFault });
}

function noteFailure(
  { dataDir, directory, hosts, log, now, retryMs }: RenewalOptions,
  subject: string,
  error: unknown,
): void {
  const before = readState(dataDir);
  const failures = before.attemptedFor === subject ? (before.failures ?? 0) + 1 : 1;
  const asked = error instanceof OrderError ? error.askedMs : undefined;
  const own = retryMs?.(failures);
  const wait = own === undefined ? retryAfter(failures, Math.random(), asked) : Math.max(own, asked ?? 0);
  const retryAt = new Date(now() + wait).toISOString();
  const failure = `No certificate could be obtained from ${new URL(directory).host}: ${oneLine(error)}.`;
  writeState(dataDir, {
    ...(before.obtainedFor && { obtainedFor: before.obtainedFor }),
    ...{ attemptedFor: subject, failures, notBefore: retryAt, failure },
  });
  const kept = readCertificate(dataDir);
  const meanwhile = kept
    ? `The one that ends ${new Date(kept.endsAt).toISOString()} is used.`
    : 'There is none yet.';
  const message = `${failure} It is tried again at ${retryAt}. ${meanwhile}`;
  log.error('acme.failed', { hosts, failures, retryAt, message });
}

/** One line without its full stop, shortened: texts of an authority are not trusted. */
function oneLine(error: unknown): string {
  return messageOf(error).replace(/\s+/g, ' ').replace(/\.$/, '').slice(0, 500);
}

const hourMs = 3_600_000;
const longestRetryMs = 6 * hourMs;
/** Limit on the delay that an authority asks for; a longer one is taken for a mistake. */
const longestWaitMs = 7 * 24 * hourMs;
/** The first retry comes after a minute at most: authorities count failures by the hour. */
const firstDoublings = 6;

/** The time of renewal: two thirds of its life, and up to a hundredth later, so that servers do not renew all at once. `random`: 0 to 1. */
export function renewalAt(
  { beginsAt, endsAt }: { beginsAt: number; endsAt: number },
  random: number,
): number {
  const lifeMs = endsAt - beginsAt;
  return beginsAt + (lifeMs * 2) / 3 + (lifeMs / 100) * random;
}

/** The delay after so many failures in a row; `askedMs`: the delay that the authority asked for. */
export function retryAfter(failures: number, random: number, askedMs = 0): number {
  const own = retryDelay(failures + firstDoublings, random, longestRetryMs);
  return Math.max(own, Math.min(askedMs, longestWaitMs));
}

/** The certificate that servers behind the same names share. */
export interface CertificateOfAll {
  /** The one that was obtained last, and for which names. */
  find(): Promise<SharedCertificate | undefined>;
  /** Access to ordering one for all; undefined where another server orders. */
  ordering():
    | {
        /** The key of the account at the authority, made by `make` where there is none. */
        account(make: () => Promise<Buffer>): Promise<Buffer>;
        keep(certificate: SharedCertificate): Promise<void>;
      }
    | undefined;
}

interface SharedCertificate {
  subject: string;
  pem: Buffer;
}

const pollMs = 5_000;

/** Takes the certificate that another server has obtained meanwhile; else orders one, once this server is the one that orders. */
export async function takeOrOrder(
  all: CertificateOfAll,
  { directory, hosts, now }: { directory: string; hosts: readonly string[]; now(): number },
  order: (account: (make: () => Promise<Buffer>) => Promise<Buffer>) => Promise<Buffer>,
  signal: AbortSignal,
): Promise<Buffer> {
  const subject = JSON.stringify([directory, hosts]);
  for (;;) {
    const known = await all.find();
    // Random 0 is the earliest time at which any server renews: a certificate past it is not the new one.
    if (known?.subject === subject && renewalAt(parseCertificate(known.pem), 0) > now()) return known.pem;
    const ordering = all.ordering();
    if (ordering) {
      const pem = await order(ordering.account);
      await ordering.keep({ subject, pem });
      return pem;
    }
    await sleep(pollMs, undefined, { signal }).catch(() => {
      throw new Error('the server that orders it has not obtained it');
    });
  }
}
