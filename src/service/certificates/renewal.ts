/**
 * When a certificate is ordered: at once where there is none, at two thirds of its life, and later after a failure. Of several servers
 * behind the same names, one orders it, and the others take it from there.
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
/** The clock may be set meanwhile. */
const checkMs = 3_600_000;

/** Obtains what is due from now on. Woken where the time of day has changed. */
export function startRenewal(options: RenewalOptions): Rounds {
  const { dataDir, directory, hosts, log, now, order, onObtained } = options;
  // Another authority, or another name, needs another certificate, and does not wait for what failed before.
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

/** One line without its full stop. What an authority says is not trusted further than that. */
function oneLine(error: unknown): string {
  return messageOf(error).replace(/\s+/g, ' ').replace(/\.$/, '').slice(0, 500);
}

const hourMs = 3_600_000;
const longestRetryMs = 6 * hourMs;
/** No authority means longer; what it says beyond is taken for a mistake. */
const longestWaitMs = 7 * 24 * hourMs;
/** The first attempt after a failure waits a minute at most: authorities count failures by the hour. */
const firstDoublings = 6;

/** At two thirds of its life, and up to a hundredth of it later, so that not all are renewed at once. `random`: 0 to 1. */
export function renewalAt(
  { beginsAt, endsAt }: { beginsAt: number; endsAt: number },
  random: number,
): number {
  const lifeMs = endsAt - beginsAt;
  return beginsAt + (lifeMs * 2) / 3 + (lifeMs / 100) * random;
}

/** After so many failures in a row; `askedMs`: what the authority itself said. */
export function retryAfter(failures: number, random: number, askedMs = 0): number {
  const own = retryDelay(failures + firstDoublings, random, longestRetryMs);
  return Math.max(own, Math.min(askedMs, longestWaitMs));
}

/** What all servers behind the same names have. */
export interface CertificateOfAll {
  /** The one that was obtained last, and for what. */
  find(): Promise<KeptCertificate | undefined>;
  /** What it takes to order one for all; undefined where it is another server that orders. */
  ordering():
    | {
        /** The key of the account at the authority, made by `make` where there is none. */
        account(make: () => Promise<Buffer>): Promise<Buffer>;
        keep(certificate: KeptCertificate): Promise<void>;
      }
    | undefined;
}

interface KeptCertificate {
  subject: string;
  pem: Buffer;
}

const pollMs = 5_000;

/** The certificate that another server has obtained meanwhile, or else what `order` obtains, once this server is the one that orders. */
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
