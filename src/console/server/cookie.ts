/**
 * The console's cookies. Over TLS the name begins with `__Host-Http-`: no other host, no script and no plain connection
 * sets such a cookie (RFC 6265bis, 4.1.3). Browsers demand Secure for that, so that over plain HTTP, which is loopback
 * only, the name has no prefix.
 */
import type { IncomingMessage } from 'node:http';

interface CookieOptions {
  name: string;
  secure: boolean;
  sameSite: 'Strict' | 'Lax';
  /** In seconds. */
  maxAge: number;
}

/** Cookies of one kind. A browser may hold several, each with a label; '' is the one without. */
export function createConsoleCookies({ name, secure, sameSite, maxAge }: CookieOptions) {
  const start = secure ? `__Host-Http-${name}` : name;
  const end = secure ? '; Secure' : '';
  const line = (label: string, value: string, age: number) => {
    const full = label === '' ? start : `${start}-${label}`;
    return `${full}=${value}; Path=/; HttpOnly; SameSite=${sameSite}; Max-Age=${age}${end}`;
  };
  return {
    /** All that the browser sent: over plain HTTP something else on this host may have set another of the same name. */
    read: (request: IncomingMessage) =>
      cookiesOf(request)
        .filter((one) => one.name === start || one.name.startsWith(`${start}-`))
        .map((one) => ({ label: one.name.slice(start.length + 1), value: one.value })),
    write: (label: string, value: string) => line(label, value, maxAge),
    remove: (label: string) => line(label, '', 0),
  };
}

function cookiesOf({ headers }: IncomingMessage): { name: string; value: string }[] {
  const parts = (headers.cookie ?? '').split(';').filter((part) => part.includes('='));
  return parts.map((part) => {
    const at = part.indexOf('=');
    return { name: part.slice(0, at).trim(), value: part.slice(at + 1).trim() };
  });
}
