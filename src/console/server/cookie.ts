/**
 * The console's cookies. Over TLS the name begins with `__Host-Http-`: no other host, no script and no plain connection
 * sets such a cookie (RFC 6265bis, 4.1.3). Browsers demand Secure for that, so that over plain HTTP, which is loopback
 * only, the name has no prefix.
 */
import type { IncomingMessage } from 'node:http';

export interface ConsoleCookie {
  /** Every value that the browser sent: over plain HTTP something else on this host may have set another in its place. */
  read(request: IncomingMessage): string[];
  write(value: string): string;
  remove(): string;
}

interface CookieOptions {
  name: string;
  secure: boolean;
  sameSite: 'Strict' | 'Lax';
  /** In seconds. */
  maxAge: number;
}

/** More of one name are not looked at. */
const mostValues = 8;

export function createConsoleCookie(options: CookieOptions): ConsoleCookie {
  const { name, line } = namesOf(options);
  return {
    read: (request) =>
      cookiesOf(request)
        .filter((one) => one.name === name)
        .slice(0, mostValues)
        .map(({ value }) => value),
    write: (value) => line(name, value),
    remove: () => line(name, '', 0),
  };
}

/** Cookies of one kind, of which a browser holds several, each with a label. */
export interface ConsoleCookies {
  read(request: IncomingMessage): { label: string; value: string }[];
  write(label: string, value: string): string;
  remove(label: string): string;
}

export function createConsoleCookies(options: CookieOptions): ConsoleCookies {
  const { name, line } = namesOf(options);
  const start = `${name}-`;
  return {
    read: (request) =>
      cookiesOf(request)
        .filter((one) => one.name.startsWith(start))
        .map((one) => ({ label: one.name.slice(start.length), value: one.value })),
    write: (label, value) => line(start + label, value),
    remove: (label) => line(start + label, '', 0),
  };
}

function namesOf({ name, secure, sameSite, maxAge }: CookieOptions) {
  return {
    name: secure ? `__Host-Http-${name}` : name,
    line: (full: string, value: string, age = maxAge) =>
      `${full}=${value}; Path=/; HttpOnly; SameSite=${sameSite}; Max-Age=${age}${secure ? '; Secure' : ''}`,
  };
}

function cookiesOf({ headers }: IncomingMessage): { name: string; value: string }[] {
  const parts = (headers.cookie ?? '').split(';').filter((part) => part.includes('='));
  return parts.map((part) => {
    const at = part.indexOf('=');
    return { name: part.slice(0, at).trim(), value: part.slice(at + 1).trim() };
  });
}
