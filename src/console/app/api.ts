/** The two APIs, typed by their documents, and what becomes of an answer that is none. */
import { QueryClient } from '@tanstack/react-query';
import createClient from 'openapi-fetch';
import type { paths as BusinessPaths } from '../../api/business.ts';
import type { paths as PlatformPaths } from '../../api/platform.ts';
import { isInUse } from './in-use.ts';

/** A refusal of an API, in its own words. */
export class ApiError extends Error {
  readonly code: string;
  readonly status: number;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** Nothing came back: whether it was done is not known. */
export class NoAnswer extends Error {}

export function ownHeaders(): Record<string, string> {
  return { 'X-Andromeda-Console': isInUse() ? 'active' : 'idle' };
}

async function send(request: Request): Promise<Response> {
  for (const [name, value] of Object.entries(ownHeaders())) request.headers.set(name, value);
  return fetch(request).catch(() => {
    throw new NoAnswer('The console cannot be reached.');
  });
}

export const business = createClient<BusinessPaths>({ baseUrl: '/api/business', fetch: send });
export const platform = createClient<PlatformPaths>({ baseUrl: '/api/platform', fetch: send });

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** The body of an answer. Throws `ApiError`. */
export function bodyOf<T>({ data, error, response }: Answer<T>): T {
  if (response.ok && data !== undefined) return data;
  const { code = 'internal', message, error: keyMessage } = (error ?? {}) as Record<string, string>;
  throw new ApiError(response.status, code, message ?? keyMessage ?? 'The server gave no reason.');
}

/** A read or a write of the console's own server. */
export async function own<T>(method: 'GET' | 'POST', path: string): Promise<T> {
  const response = await send(new Request(path, { method }));
  const body = await response.json().catch(() => undefined);
  return bodyOf<T>({ response, ...(response.ok ? { data: body } : { error: body }) });
}

let isLeaving = false;
let wasSignedIn = false;

/** From here on a session that ends is told, and does not begin another by itself. */
export function noteSignedIn(): void {
  wasSignedIn = true;
}

/** What is refused from here on leads nowhere. */
export function holdStill(): void {
  isLeaving = true;
}

/** Leaves for good: what is refused meanwhile leads nowhere else. */
export function leaveFor(url: string): void {
  isLeaving = true;
  window.location.assign(url);
}

/** Nobody is signed in: to the issuer or, where somebody was until now, to a page that says so. */
export function goToSignIn(): void {
  const { pathname, search, hash } = window.location;
  if (isLeaving || pathname === '/signed-out') return;
  isLeaving = true;
  const to = encodeURIComponent(pathname + search + hash);
  window.location.assign(wasSignedIn ? '/signed-out?why=ended' : `/sign-in?to=${to}`);
}

export function isSignedOut(error: unknown): boolean {
  return error instanceof ApiError && error.status === 401;
}

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      // The live stream says when something changed; nothing is asked for again without a reason.
      staleTime: Number.POSITIVE_INFINITY,
      refetchOnWindowFocus: false,
      refetchOnReconnect: false,
      retry: (count, error) =>
        count < 2 && (error instanceof NoAnswer || (error instanceof ApiError && error.status === 503)),
    },
  },
});

queryClient.getQueryCache().subscribe(({ query }) => {
  if (query.state.status === 'error' && isSignedOut(query.state.error)) goToSignIn();
});
