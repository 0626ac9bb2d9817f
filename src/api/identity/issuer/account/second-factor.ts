/**
 * The second factor: codes of an authenticator app (TOTP, RFC 6238, with the parameters that every app supports),
 * passkeys, and recovery codes for their loss. A person with a factor always needs it; one without sets it up before
 * the sign-in completes, if the installation requires one.
 */
import { createHash, randomBytes } from 'node:crypto';
import { isIP } from 'node:net';
import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server';
import { Secret, TOTP } from 'otpauth';
import type { Limit, Limits } from '../../../../lib/limits.ts';
import { seal, unseal } from '../../../../lib/secrets-key.ts';
import { appendAuditEntry } from '../../../../store/audit/audit.ts';
import type { Store } from '../../../../store/engine/index.ts';
import { toTime } from '../../../../store/engine/time.ts';
import { listStaffKeys } from '../../../../store/people/people.ts';
import {
  deleteSecondFactor,
  findSecondFactor,
  type Passkey,
  type SecondFactor,
  saveSecondFactor,
} from '../../../../store/people/second-factors.ts';

/** The people who must have a second factor; others may. */
export type FactorPolicy = 'none' | 'staff' | 'all';

export interface SecondFactorOptions {
  store: Store;
  policy: FactorPolicy;
  party: RelyingParty | undefined;
  secret: Buffer;
  limits: Limits;
  now(): number;
}

const stepMs = 30_000;
/** Codes of the previous and the next step are accepted too: clocks differ. */
const skewSteps = 1;
const recoveryCodes = 10;
export const mostPasskeys = 10;
/** An attacker who guesses codes knows the password. Three of a million codes are valid. */
const guesses: Limit = {
  name: 'second factor of account',
  backOff: { free: 5, firstMs: 5_000, mostMs: 15 * 60_000, forgetMs: 24 * 3_600_000 },
};

const purposeOf = (userId: string) => `second factor of ${userId}`;

/** The person's answer: a code, or a passkey in a step that ends at a time (ms since 1970). */
export type Answer = { code: string } | (PasskeyAnswer & { until: number });

export class SecondFactors {
  readonly #options: SecondFactorOptions;

  constructor(options: SecondFactorOptions) {
    this.#options = options;
  }

  async isAsked(userId: string): Promise<boolean> {
    const { store, policy } = this.#options;
    if (policy !== 'staff') return policy === 'all';
    return (await listStaffKeys(store.read, userId)).length > 0;
  }

  async neededBy(userId: string): Promise<'nothing' | 'code' | 'setup'> {
    if (await findSecondFactor(this.#options.store.read, userId)) return 'code';
    return (await this.isAsked(userId)) ? 'setup' : 'nothing';
  }

  /** Verifies an answer and uses it up; returns the wait in ms after too many wrong ones. */
  async check(userId: string, answer: Answer): Promise<boolean | number> {
    const { store, limits, party } = this.#options;
    const counted = { account: { limit: guesses, key: userId } };
    // Counted before the check, so that concurrent guesses count too.
    const waitMs = await limits.change(counted, ({ account }) => {
      const ms = account.waitMs();
      if (ms === 0) account.use();
      return ms;
    });
    if (waitMs > 0) return waitMs;
    const { passkeys = [] } = (await findSecondFactor(store.read, userId)) ?? {};
    const proved = 'code' in answer ? undefined : party && (await verifyOne(party, answer, passkeys));
    const isGood = await store.write(async (tx) => {
      const factor = await findSecondFactor(tx.db, userId);
      const spent =
        factor &&
        ('code' in answer
          ? this.#spend(userId, factor, answer.code)
          : usePasskey(factor, proved, answer.until));
      if (spent) await saveSecondFactor(tx, userId, spent);
      return spent !== undefined;
    });
    if (isGood) await limits.change(counted, ({ account }) => account.clear());
    return isGood;
  }

  #spend(userId: string, factor: SecondFactor, code: string): SecondFactor | undefined {
    const { secret, now } = this.#options;
    const app = unseal(factor.sealed ?? '', secret, purposeOf(userId));
    const step = typeof app === 'string' ? stepOf(app, code, now()) : undefined;
    if (step !== undefined) return step > factor.lastStep ? { ...factor, lastStep: step } : undefined;
    const digest = digestOf(code);
    if (!factor.recovery.includes(digest)) return undefined;
    return { ...factor, recovery: factor.recovery.filter((one) => one !== digest) };
  }

  /**
   * Stores the app's secret if the code matches it, replacing the former app, or adds a passkey; returns the recovery codes.
   * Undefined for a wrong answer, or if the factor changed meanwhile: `before` is its `since` at the start, undefined for none.
   */
  async setUp(
    userId: string,
    { app, before }: { app: string; before: string | undefined },
    answer: Answer,
    address: string,
  ): Promise<string[] | undefined> {
    const { store, secret, now, party } = this.#options;
    const passkey = 'code' in answer ? undefined : party && (await verifyNew(party, answer, toTime(now())));
    const lastStep = 'code' in answer ? stepOf(app, answer.code, now()) : undefined;
    if (!passkey && lastStep === undefined) return undefined;
    const codes = newRecoveryCodes();
    return store.write(async (tx) => {
      const factor = await findSecondFactor(tx.db, userId);
      if (factor?.since !== before) return undefined;
      const passkeys = [...(factor?.passkeys ?? []), ...(passkey ? [passkey] : [])];
      if (passkeys.length > mostPasskeys) return undefined;
      const made = lastStep === undefined ? {} : { lastStep, sealed: seal(app, secret, purposeOf(userId)) };
      const recovery = codes.map(digestOf);
      const since = toTime(tx.now);
      await saveSecondFactor(tx, userId, { lastStep: 0, ...factor, ...made, passkeys, recovery, since });
      await appendAuditEntry(tx, { ...ownEntry(userId, address), operation: 'setUpSecondFactor' });
      return codes;
    });
  }

  renewCodes(userId: string, address: string): Promise<string[] | undefined> {
    return this.#options.store.write(async (tx) => {
      const factor = await findSecondFactor(tx.db, userId);
      if (!factor) return undefined;
      const codes = newRecoveryCodes();
      await saveSecondFactor(tx, userId, { ...factor, recovery: codes.map(digestOf) });
      await appendAuditEntry(tx, { ...ownEntry(userId, address), operation: 'renewRecoveryCodes' });
      return codes;
    });
  }

  /** Removes the app (`app`), or a passkey by its ID. A person who must have a factor keeps the last one. */
  async remove(userId: string, which: string, address: string): Promise<void> {
    const isAsked = await this.isAsked(userId);
    await this.#options.store.write(async (tx) => {
      const factor = await findSecondFactor(tx.db, userId);
      if (!factor) return;
      const passkeys = (factor.passkeys ?? []).filter(({ id }) => id !== which);
      const sealed = which === 'app' ? undefined : factor.sealed;
      const isLast = sealed === undefined && passkeys.length === 0;
      const isThere = sealed !== factor.sealed || passkeys.length < (factor.passkeys ?? []).length;
      if (!isThere || (isLast && isAsked)) return;
      if (isLast) await deleteSecondFactor(tx, userId);
      else await saveSecondFactor(tx, userId, { ...factor, sealed, passkeys });
      await appendAuditEntry(tx, { ...ownEntry(userId, address), operation: 'removeSecondFactor' });
    });
  }
}

/** The factor after the use of a passkey; undefined if that was removed meanwhile, or the step's challenge was used before. */
function usePasskey(
  factor: SecondFactor,
  proved: Passkey | undefined,
  usedUntil: number,
): SecondFactor | undefined {
  const { passkeys = [] } = factor;
  if (usedUntil <= (factor.usedUntil ?? 0) || !passkeys.some(({ id }) => id === proved?.id)) return undefined;
  const used = passkeys.map((one) => (proved && one.id === proved.id ? proved : one));
  return { ...factor, usedUntil, passkeys: used };
}

export function ownEntry(userId: string, sourceAddress: string) {
  const about = { actorUserId: userId, target: userId, subjectUserId: userId, sourceAddress };
  return { ...about, reason: 'On the sign-in page', result: 'done' as const };
}

export function newAppSecret(): string {
  return new Secret({ size: 20 }).base32;
}

export function appAddress(secret: string, email: string): string {
  return new TOTP({ issuer: 'Andromeda', label: email, secret }).toString();
}

/** The time step of a code, if it is one of the accepted ones near `now`. */
function stepOf(secret: string, code: string, now: number): number | undefined {
  const token = code.replaceAll(' ', '');
  if (!/^\d{6}$/.test(token)) return undefined;
  const delta = new TOTP({ secret }).validate({ token, timestamp: now, window: skewSteps });
  return delta === null ? undefined : Math.floor(now / stepMs) + delta;
}

/** Eighty random bits each, so that digests cannot be reversed. */
function newRecoveryCodes(): string[] {
  return Array.from({ length: recoveryCodes }, () =>
    (randomBytes(10).toString('hex').match(/.{5}/g) ?? []).join('-'),
  );
}

function digestOf(code: string): string {
  return createHash('sha256')
    .update(code.toLowerCase().replace(/[^0-9a-f]/g, ''))
    .digest('base64url');
}

/** The site that requests passkeys; browsers bind passkeys to its host name. */
interface RelyingParty {
  id: string;
  origin: string;
}

export interface PasskeyRequest {
  method: 'create' | 'get';
  options: { challenge: string };
}

interface PasskeyAnswer {
  passkey: string;
  challenge: string;
}

/** Undefined for an issuer at an IP address, for which browsers have no passkeys. */
export function relyingPartyOf({ hostname, origin }: URL): RelyingParty | undefined {
  return isIP(hostname.replace(/^\[|\]$/g, '')) === 0 ? { id: hostname, origin } : undefined;
}

// Lazy: the library takes half a second to load, which only people with a passkey should wait for.
async function library() {
  const all = await import('@simplewebauthn/server');
  // Without this, the library fetches URLs in attestation certificates; attestations are not used.
  for (const identifier of ['apple', 'android-key', 'android-safetynet'] as const)
    all.SettingsService.setRootCertificates({ identifier, certificates: [] });
  return all;
}

export async function askForNew(
  { id: rpID }: RelyingParty,
  { userId, email, passkeys }: { userId: string; email: string; passkeys: readonly Passkey[] },
): Promise<PasskeyRequest> {
  const { generateRegistrationOptions } = await library();
  const options = await generateRegistrationOptions({
    ...{ rpName: 'Andromeda', rpID, userName: email, userID: Buffer.from(userId) },
    excludeCredentials: passkeys.map(({ id }) => ({ id })),
  });
  return { method: 'create', options };
}

export async function askForOne(
  { id: rpID }: RelyingParty,
  passkeys: readonly Passkey[],
): Promise<PasskeyRequest> {
  const { generateAuthenticationOptions } = await library();
  const allowCredentials = passkeys.map(({ id }) => ({ id }));
  return { method: 'get', options: await generateAuthenticationOptions({ rpID, allowCredentials }) };
}

/** The passkey that a browser created; undefined if verification fails. */
export async function verifyNew(
  { id, origin }: RelyingParty,
  { passkey, challenge }: PasskeyAnswer,
  since: string,
): Promise<Passkey | undefined> {
  const { verifyRegistrationResponse } = await library();
  const { registrationInfo } = await orNothing(() =>
    verifyRegistrationResponse({
      response: JSON.parse(passkey) as RegistrationResponseJSON,
      ...{ expectedChallenge: challenge, expectedOrigin: origin, expectedRPID: id },
      requireUserVerification: false,
    }),
  );
  if (!registrationInfo) return undefined;
  const { credential } = registrationInfo;
  const publicKey = Buffer.from(credential.publicKey).toString('base64url');
  return { id: credential.id, publicKey, counter: credential.counter, since };
}

/** The passkey that a browser proved, with its new counter; undefined if verification fails. */
async function verifyOne(
  { id: rpId, origin }: RelyingParty,
  { passkey, challenge }: PasskeyAnswer,
  passkeys: readonly Passkey[],
): Promise<Passkey | undefined> {
  const { verifyAuthenticationResponse } = await library();
  let used: Passkey | undefined;
  const { verified, authenticationInfo } = await orNothing(() => {
    const response = JSON.parse(passkey) as AuthenticationResponseJSON;
    used = passkeys.find(({ id }) => id === response.id);
    if (!used) throw new Error('another passkey');
    const { id, publicKey, counter } = used;
    return verifyAuthenticationResponse({
      response,
      ...{ expectedChallenge: challenge, expectedOrigin: origin, expectedRPID: rpId },
      credential: { id, counter, publicKey: Buffer.from(publicKey, 'base64url') },
      requireUserVerification: false,
    });
  });
  return used && verified && authenticationInfo
    ? { ...used, counter: authenticationInfo.newCounter }
    : undefined;
}

/** The library throws if verification fails. */
async function orNothing<T extends object>(verify: () => Promise<T>): Promise<Partial<T>> {
  try {
    return await verify();
  } catch {
    return {};
  }
}
