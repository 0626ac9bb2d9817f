/** What lets a request in, and its body: JSON, up to a size, with texts as both databases store them. */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { badScim, ScimError } from '../../domain/scim/error.ts';
import { storedText } from '../../domain/stored-text.ts';
import { createBackOffLimiter } from '../../lib/limits.ts';
import { sourceNetwork } from '../../lib/source-address.ts';
import type { Store } from '../../store/engine/index.ts';
import { listScimTokens } from '../../store/people/scim.ts';

const backOff = { free: 10, firstMs: 1_000, mostMs: 60_000, forgetMs: 600_000 };

/**
 * Throws 401 for what is no valid token, and 429 where its address has shown too many of those. A valid one is let in from any address:
 * it cannot be guessed, so that the limit is only against a flood, and who shares an address must not lock the provider out.
 */
export function createTokenCheck(
  store: Store,
): (authorization: string | undefined, address: string) => Promise<void> {
  const failures = createBackOffLimiter(backOff);
  return async (authorization, address) => {
    const [, token] = /^Bearer ([\w-]{20,200})$/i.exec(authorization ?? '') ?? [];
    if (token !== undefined && (await isValid(store, token))) return;
    const key = sourceNetwork(address);
    const isLimited = failures.waitMs(key) > 0;
    failures.use(key);
    if (isLimited) throw new ScimError(429, 'Too many wrong tokens came from this address. Wait a minute.');
    throw new ScimError(401, 'This needs a valid SCIM token as Bearer in the Authorization header.');
  };
}

async function isValid(store: Store, token: string): Promise<boolean> {
  const given = createHash('sha256').update(token).digest();
  const tokens = await listScimTokens(store.read);
  // All of them are compared, so that the time does not say which one it is.
  return tokens.filter(({ hash }) => timingSafeEqual(Buffer.from(hash, 'hex'), given)).length > 0;
}

/** A group of 10,000 members with their names, or a patch that adds them. */
const mostBytes = 4 * 2 ** 20;

/** Reads a body. Throws 413 or `invalidSyntax`. */
export async function readJson(request: IncomingMessage): Promise<unknown> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request.iterator({ destroyOnReturn: false })) {
    size += (part as Buffer).length;
    if (size > mostBytes) throw new ScimError(413, `The body is larger than ${mostBytes / 2 ** 20} MiB.`);
    parts.push(part as Buffer);
  }
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(parts));
    return JSON.parse(text, (_name, value: unknown) =>
      typeof value === 'string' ? storedText(value) : value,
    );
  } catch {
    throw badScim('invalidSyntax', 'The body is not readable as JSON.');
  }
}
