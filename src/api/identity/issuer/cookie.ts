/** Signed cookies: JSON with an HMAC, so that only this service can have written it. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/** A cookie of this name, signed with `key`. `maxAge` in seconds; absent: a session cookie. */
export function createCookie<T>(options: { key: string; secure: boolean; name: string; maxAge?: number }) {
  const { key, secure, maxAge } = options;
  // __Host- keeps other hosts of the domain from setting it (RFC 6265bis, 4.1.3.2); it needs TLS.
  const name = secure ? `__Host-${options.name}` : options.name;
  const age = maxAge === undefined ? '' : `; Max-Age=${maxAge}`;
  const attributes = `Path=/; HttpOnly; SameSite=Lax${age}${secure ? '; Secure' : ''}`;
  return {
    read(req: IncomingMessage): T | undefined {
      for (const part of (req.headers.cookie ?? '').split(';')) {
        const [cookieName, value = ''] = part.trim().split('=', 2);
        const [payload = '', mac = ''] = value.split('.');
        if (cookieName !== name || !isSame(mac, sign(key, options.name, payload))) continue;
        return JSON.parse(Buffer.from(payload, 'base64url').toString());
      }
      return undefined;
    },
    write(value: T): string {
      const payload = Buffer.from(JSON.stringify(value)).toString('base64url');
      return `${name}=${payload}.${sign(key, options.name, payload)}; ${attributes}`;
    },
  };
}

/** An HMAC of a text for one purpose, which only this service can make. */
export function sign(key: string, purpose: string, text: string): string {
  return createHmac('sha256', key).update(`${purpose}\n${text}`).digest('base64url');
}

/** Compares two texts in constant time. */
export function isSame(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}
