/** Typed clients of the two APIs, their errors, and the way to the sign-in when a session ends. */
import { QueryClient } from '@tanstack/react-query';
import createClient, { type ClientPathsWithMethod } from 'openapi-fetch';
import type { paths as BusinessPaths } from '../../api/generated/business.ts';
import type { paths as PlatformPaths } from '../../api/generated/platform.ts';

/** After this long without input a page counts as idle: its own reads must not keep a session open. */
const inUseMs = 120_000;
let usedAt = Date.now();

for (const event of ['pointerdown', 'keydown', 'wheel', 'touchstart']) {
  window.addEventListener(
    event,
    () => {
      usedAt = Date.now();
    },
    { passive: true, capture: true },
  );
}

export class ApiError extends Error {
  readonly code: string;
  readonly status: number;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export class NoAnswer extends Error {}

const unreachable = 'The console cannot be reached.';

/** The ID of the person whom this page shows. The server answers 401 when the browser's session is another person's. */
let person: string | undefined;

export function personOfPage(): string {
  return person ?? '';
}

export function notePerson(id: string): void {
  person = id;
}

export function ownHeaders(): Record<string, string> {
  return {
    'X-Andromeda-Console':
      document.visibilityState === 'visible' && Date.now() - usedAt < inUseMs ? 'active' : 'idle',
    ...(person !== undefined && { 'X-Andromeda-Person': person }),
  };
}

async function send(request: Request): Promise<Response> {
  for (const [name, value] of Object.entries(ownHeaders())) request.headers.set(name, value);
  return fetch(request).catch(() => {
    throw new NoAnswer(unreachable);
  });
}

export const business = createClient<BusinessPaths>({ baseUrl: '/api/business', fetch: send });
export const platform = createClient<PlatformPaths>({ baseUrl: '/api/platform', fetch: send });

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** The body of an answer. Throws `ApiError`, or `NoAnswer` where a proxy answered that could not reach the console. */
export function bodyOf<T>({ data, error, response }: Answer<T>): T {
  if (response.ok && data !== undefined) return data;
  const { code, message, error: keyMessage } = (error ?? {}) as Record<string, string>;
  if (code === undefined && [502, 503, 504].includes(response.status)) throw new NoAnswer(unreachable);
  throw new ApiError(
    response.status,
    code ?? 'internal',
    message ?? keyMessage ?? 'The server gave no reason.',
  );
}

export interface WriteHeaders {
  'Idempotency-Key': string;
  'Audit-Reason': string;
}

/** The body, or null for one of these statuses: the person may not read it, or it does not exist. */
export function bodyOrNull<T>(answer: Answer<T>, ...statuses: number[]): T | null {
  return statuses.includes(answer.response.status) ? null : bodyOf(answer);
}

export interface Operation<Body, Answer = unknown> {
  name: string;
  send(body: Body, header: WriteHeaders): Promise<Answer>;
}

type Method = 'post' | 'put';
type Writes<M extends Method> = ClientPathsWithMethod<typeof business, M>;
type IdsOf<Call> = Call extends { parameters: { path: infer Ids } } ? Ids : object;
type BodyOf<Call> = Call extends { requestBody?: { content: { 'application/json': infer Body } } }
  ? Body
  : never;
type AnswerOf<Call> = Call extends { responses: { 200: { content: { 'application/json': infer Answer } } } }
  ? Answer
  : unknown;

export function operation<M extends Method, Path extends Writes<M>>(
  method: M,
  path: Path,
  ids: IdsOf<BusinessPaths[Path][M]>,
): Operation<BodyOf<BusinessPaths[Path][M]>, AnswerOf<BusinessPaths[Path][M]>> {
  const named = path.replace(/\{(\w+)\}/g, (_, id: string) => (ids as Record<string, string>)[id] ?? '');
  return {
    name: `${method.toUpperCase()} ${named}`,
    send: (body, header) =>
      business.request(method, path, { params: { path: ids, header }, body } as never).then(bodyOf) as never,
  };
}

export async function own<T>(method: 'GET' | 'POST', path: string): Promise<T> {
  const response = await send(new Request(path, { method }));
  const body = await response.json().catch(() => undefined);
  return bodyOf<T>({ response, ...(response.ok ? { data: body } : { error: body }) });
}

let isLeaving = false;
let wasSignedIn = false;

const channel = new BroadcastChannel('andromeda-session');
/** When the person signed out on purpose, in ms since 1970, for every tab. */
const signedOutAt = 'andromeda-signed-out';
/** The issuer ends its own session within this time. Before that, it would sign in again any tab that goes to it. */
const signingOutMs = 60_000;

/** From now on, the end of the session leads to a page that says so, not to a new sign-in. */
export function noteSignedIn(): void {
  wasSignedIn = true;
  localStorage.removeItem(signedOutAt);
  channel.postMessage(person);
  // Another person signed in, in another tab: this page reloads as theirs.
  channel.addEventListener('message', ({ data }) => {
    if (data !== person) goToSignIn();
  });
}

/** The address that begins a sign-in and then leads to `to`, a path of the console; the server refuses other sites. */
export function signInAt(to: string): string {
  return `/sign-in?${new URLSearchParams({ to })}`;
}

/** Leads to `to` once any tab of this browser is signed in. Returns a function that stops the wait. */
export function goOnWhenSignedIn(to: string): () => void {
  const ask = async () => {
    const response = await fetch('/session', { headers: ownHeaders(), cache: 'no-store' }).catch(
      () => undefined,
    );
    if (response?.ok && !isStopped) window.location.replace(signInAt(to));
  };
  let isStopped = false;
  const listen = () => void ask();
  channel.addEventListener('message', listen);
  void ask();
  return () => {
    isStopped = true;
    channel.removeEventListener('message', listen);
  };
}

/** The person signs out: from now on a 401 does not navigate, and no tab signs in by itself. */
export function noteSigningOut(): void {
  isLeaving = true;
  localStorage.setItem(signedOutAt, String(Date.now()));
}

/** Navigates; a 401 meanwhile does not. */
export function leaveFor(url: string): void {
  isLeaving = true;
  window.location.assign(url);
}

/** Sends a browser without a session to the issuer or, if its session has just ended, to a page that says so and waits. */
export function goToSignIn(): void {
  const { pathname, search, hash } = window.location;
  if (isLeaving || pathname === '/signed-out') return;
  isLeaving = true;
  const to = pathname + search + hash;
  const passed = Date.now() - Number(localStorage.getItem(signedOutAt) ?? 0);
  const isSignedOutHere = passed >= 0 && passed < signingOutMs;
  const ended = `/signed-out?${new URLSearchParams({ why: 'ended', to })}`;
  window.location.assign(isSignedOutHere ? '/signed-out' : wasSignedIn ? ended : signInAt(to));
}

export function isSignedOut(error: unknown): boolean {
  return error instanceof ApiError && error.status === 401;
}

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      // The live stream invalidates queries when their data changes, so nothing else refetches.
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
