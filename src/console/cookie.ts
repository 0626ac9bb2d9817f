/**
 * The console's cookies. Over TLS the name begins with `__Host-Http-`: no other host, no script and no plain connection
 * sets such a cookie (RFC 6265bis, 4.1.3). Browsers demand Secure for that, so that over plain HTTP, which is loopback
 * only, the name has no prefix.
 */
import type { IncomingMessage } from 'node:http';

export interface ConsoleCookie {
  read(request: IncomingMessage): string | undefined;
  write(value: string): string;
  remove(): string;
}

export function createConsoleCookie(options: {
  name: string;
  secure: boolean;
  sameSite: 'Strict' | 'Lax';
  /** In seconds. */
  maxAge: number;
}): ConsoleCookie {
  const { secure, sameSite, maxAge } = options;
  const name = secure ? `__Host-Http-${options.name}` : options.name;
  const attributes = (age: number) =>
    `Path=/; HttpOnly; SameSite=${sameSite}; Max-Age=${age}${secure ? '; Secure' : ''}`;
  return {
    read(request) {
      for (const part of (request.headers.cookie ?? '').split(';')) {
        const at = part.indexOf('=');
        if (part.slice(0, at).trim() === name) return part.slice(at + 1).trim();
      }
      return undefined;
    },
    write: (value) => `${name}=${value}; ${attributes(maxAge)}`,
    remove: () => `${name}=; ${attributes(0)}`,
  };
}
