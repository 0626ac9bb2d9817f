/**
 * Checks the whole audit trail in the browser, with what the browser itself has of cryptography: nobody but the reader
 * vouches for the result. What it found last time it keeps, and wants to find again.
 */
import type { components } from '../../api/business.ts';
import { auditText, checkpointText, headText, redactionTextOf } from '../../domain/audit-text.ts';
import { bodyOf, business } from './api.ts';

type Entry = components['schemas']['AuditEntry'];
type Head = components['schemas']['SignedAuditHead'];

/** Entries a request: few enough that the server answers others in between. */
const pageSize = 250;
const keptAs = 'andromeda-audit-seen';

/** What this browser found when it last checked. */
export interface Seen {
  key: string;
  seq: number;
  hash: string;
  /** RFC 3339. */
  at: string;
}

export interface Verified {
  last: number;
  hash: string;
  /** How many were looked at. */
  entries: number;
  /** Up to which entry a signed head says so; 0: none. */
  signed: number;
  redacted: number;
  /** Up to which entry the trail was deleted by the installation. */
  deleted: number;
  /** Whether this browser can check signatures (Ed25519). */
  hasSignatures: boolean;
  /** When the entry that was last found here was found; undefined: this is the first time. */
  seenAt: string | undefined;
  ms: number;
}

/** The trail does not fit: a sentence. */
export class Broken extends Error {}

/** Reads and checks everything. Throws `Broken`. */
export async function verifyTrail(
  signal: AbortSignal,
  onProgress: (done: number) => void,
): Promise<Verified> {
  const startedAt = performance.now();
  // What is not signed yet is signed now; the server refuses where that does not go on from what it signed before.
  const signing = await business.GET('/operator/audit/head', { signal });
  if (signing.response.status === 409) throw new Broken(signing.error?.message ?? 'It is not signed.');
  const { key, heads, checkpoint } = bodyOf(await business.GET('/operator/audit/heads', { signal }));
  const seen = readSeen();
  if (seen && seen.key !== key)
    throw new Broken(
      `The installation signs with another key than on ${new Date(seen.at).toLocaleString()}. If that was meant, forget what this browser has seen, and check again.`,
    );
  const verify = await verifierOf(key);
  for (const head of heads) {
    if (head.key !== key)
      throw new Broken(
        `The head of entry ${head.seq} is signed with another key. If that was yours, \`andromeda admin audit verify\` takes both with --key.`,
      );
    if (!(await isSigned(verify, key, headText(head), head)))
      throw new Broken(`The signature of the head of entry ${head.seq} is wrong.`);
  }
  if (checkpoint && !(await isSigned(verify, key, checkpointText(checkpoint), checkpoint)))
    throw new Broken(
      `The trail was cut: the signature of where it begins, entry ${checkpoint.seq}, is wrong.`,
    );
  const walk = { hash: checkpoint?.hash ?? '', last: checkpoint?.seq ?? 0, redacted: 0 };
  const begin = walk.last;
  const known = new Map(heads.map((head) => [head.seq, head.hash]));
  for (;;) {
    const query = { order: 'oldest' as const, limit: pageSize, after: walk.last };
    const { entries } = bodyOf(await business.GET('/operator/audit', { params: { query }, signal }));
    await checkPage(entries, walk, { verify, key, known, seen });
    onProgress(walk.last - begin);
    if (entries.length < pageSize) break;
  }
  const signed = heads.at(-1)?.seq ?? 0;
  for (const [seq, what] of [
    [signed, 'was signed'],
    [seen?.seq ?? 0, 'was found here before'],
  ] as const)
    if (seq > walk.last)
      throw new Broken(`The trail was cut: it ends at entry ${walk.last}, and entry ${seq} ${what}.`);
  const at = new Date().toISOString();
  localStorage.setItem(keptAs, JSON.stringify({ key, seq: walk.last, hash: walk.hash, at } satisfies Seen));
  return {
    ...walk,
    entries: walk.last - begin,
    signed,
    deleted: begin,
    hasSignatures: verify !== undefined,
    seenAt: seen?.at,
    ms: performance.now() - startedAt,
  };
}

export function forgetSeen(): void {
  localStorage.removeItem(keptAs);
}

function readSeen(): Seen | undefined {
  try {
    const seen = JSON.parse(localStorage.getItem(keptAs) ?? 'null') as Partial<Seen> | null;
    const { key, seq, hash, at } = seen ?? {};
    return typeof key === 'string' &&
      typeof hash === 'string' &&
      typeof at === 'string' &&
      Number.isSafeInteger(seq)
      ? { key, seq: Number(seq), hash, at }
      : undefined;
  } catch {
    return undefined;
  }
}

interface Walk {
  hash: string;
  last: number;
  redacted: number;
}

/** Each entry rests on what the one before it claims, so that all of a page are computed side by side. */
async function checkPage(
  entries: readonly Entry[],
  walk: Walk,
  against: { verify: Verifier | undefined; key: string; known: Map<number, string>; seen: Seen | undefined },
): Promise<void> {
  const { verify, key, known, seen } = against;
  const fits = await Promise.all(
    entries.map(async (entry, index) => {
      const previous = index === 0 ? walk.hash : (entries[index - 1]?.hash ?? '');
      const { redaction } = entry;
      if (!redaction) return entry.hash === (await hashOf(previous, entry));
      const text = redactionTextOf({ ...entry, previous, now: await hashOf('', entry), at: redaction.at });
      return isSigned(verify, key, text, redaction);
    }),
  );
  for (const [index, entry] of entries.entries()) {
    if (entry.seq !== walk.last + 1 || fits[index] !== true)
      throw new Broken(
        `Entry ${entry.seq} is the first that does not fit: it was changed, or what stood before it.`,
      );
    if ((known.get(entry.seq) ?? entry.hash) !== entry.hash)
      throw new Broken(`The trail was rewritten: entry ${entry.seq} is not the one that was signed.`);
    if (seen?.seq === entry.seq && seen.hash !== entry.hash)
      throw new Broken(
        `The trail was rewritten: entry ${entry.seq} is not the one that was found here before.`,
      );
    if (entry.redaction) walk.redacted += 1;
    walk.last = entry.seq;
    walk.hash = entry.hash;
  }
}

const encoder = new TextEncoder();

async function hashOf(previous: string, entry: Entry): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', encoder.encode(auditText(previous, entry)));
  return `sha256:${new Uint8Array(digest).reduce((text, byte) => text + byte.toString(16).padStart(2, '0'), '')}`;
}

type Verifier = (text: string, signature: string) => Promise<boolean>;

/** Undefined where the browser has no Ed25519: Chromium before 137, for one. */
async function verifierOf(key: string): Promise<Verifier | undefined> {
  const imported = await crypto.subtle
    .importKey('spki', bytesOf(key.replace(/^ed25519:/, '')), { name: 'Ed25519' }, false, ['verify'])
    .catch((error: unknown) => {
      if (error instanceof DOMException && error.name === 'NotSupportedError') return undefined;
      throw new Broken('The key of the installation cannot be read.');
    });
  if (!imported) return undefined;
  return (text, signature) =>
    crypto.subtle.verify({ name: 'Ed25519' }, imported, bytesOf(signature), encoder.encode(text));
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  try {
    return Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}

async function isSigned(
  verify: Verifier | undefined,
  key: string,
  text: string,
  by: Pick<Head, 'key' | 'signature'>,
): Promise<boolean> {
  return by.key === key && (verify === undefined || (await verify(text, by.signature)));
}
