/** Second factors of people at the embedded issuer, and links to set a password. Both are records of the issuer. */
import type { Reader, Tx } from '../engine/index.ts';
import { fromTime } from '../engine/time.ts';
import {
  consumeIssuerRecord,
  deleteIssuerRecord,
  deleteIssuerRecordsOfGrant,
  findIssuerRecord,
  saveIssuerRecord,
} from './issuer-records.ts';

/** Made by a browser or a security key (WebAuthn). */
export interface Passkey {
  /** The credential's, base64url. */
  id: string;
  /** COSE, base64url. */
  publicKey: string;
  /** How often it was used, as it reports itself: a copy of it falls behind. Many always report 0. */
  counter: number;
  /** RFC 3339. */
  since: string;
}

/** An authenticator app, passkeys, and codes for when they are lost. */
export interface SecondFactor {
  /** The app's secret, encrypted; undefined for none. */
  sealed?: string | undefined;
  /** The time step of the last code that was used: no code is used twice (RFC 6238, 5.2). */
  lastStep: number;
  passkeys?: readonly Passkey[] | undefined;
  /** The end of the newest step that a passkey was used for, in ms since 1970: no challenge is used twice. */
  usedUntil?: number | undefined;
  /** SHA-256 of each recovery code that is left. */
  recovery: readonly string[];
  /** RFC 3339. */
  since: string;
}

const factors = 'SecondFactor';
const links = 'PasswordLink';

export async function findSecondFactor(db: Reader, userId: string): Promise<SecondFactor | undefined> {
  // The record never expires, so any time will do.
  const record = await findIssuerRecord(db, factors, userId, 0);
  return record && (record.payload as unknown as SecondFactor);
}

/** The record has `accountId`, by which erasing a person finds it. */
export async function saveSecondFactor(tx: Tx, userId: string, factor: SecondFactor): Promise<void> {
  await saveIssuerRecord(tx, factors, userId, { ...factor, accountId: userId }, undefined);
  tx.changed({ kind: 'person', userId });
}

/** Returns whether there was one. */
export async function deleteSecondFactor(tx: Tx, userId: string): Promise<boolean> {
  const known = await findSecondFactor(tx.db, userId);
  await deleteIssuerRecord(tx, factors, userId);
  tx.changed({ kind: 'person', userId });
  return known !== undefined;
}

const grantOf = (userId: string) => `password link of ${userId}`;

/** Creates a link that works once, until a time (RFC 3339), and replaces the one before. `token`: the secret in it. */
export async function createPasswordLink(
  tx: Tx,
  { userId, token, until }: { userId: string; token: string; until: string },
): Promise<void> {
  const grantId = grantOf(userId);
  await deletePasswordLinks(tx, userId);
  const expiresAt = Math.floor(fromTime(until) / 1000);
  await saveIssuerRecord(tx, links, token, { accountId: userId, grantId }, expiresAt);
}

export async function deletePasswordLinks(tx: Tx, userId: string): Promise<void> {
  await deleteIssuerRecordsOfGrant(tx, links, grantOf(userId));
}

/** The person whose link it is; undefined where it is none, used, replaced or expired. `now` in ms since 1970. */
export async function findPasswordLink(db: Reader, token: string, now: number): Promise<string | undefined> {
  const record = await findIssuerRecord(db, links, token, Math.floor(now / 1000));
  return record && record.consumedAt === undefined ? String(record.payload['accountId']) : undefined;
}

/** Uses up a link; false where another request was faster. */
export function takePasswordLink(tx: Tx, token: string): Promise<boolean> {
  return consumeIssuerRecord(tx, links, token, Math.floor(tx.now / 1000));
}
