/** A server of a few answers in the place of both APIs, and the program signed in to it. */
import type { ServerResponse } from 'node:http';
import type { TestContext } from 'node:test';
import { createMachine, json, type Seen, serve, sessionAt } from './harness.ts';

/** By `METHOD /path?query`: the body of a 200, or a function that returns one, or answers itself. */
export type Routes = Record<string, unknown>;

export async function signedIn(t: TestContext, routes: Routes) {
  const machine = await createMachine(t);
  const api = await serve(t, async (seen, response) => {
    const route = routes[`${seen.method} ${seen.url}`];
    if (route === undefined) return refuse(response, 404, 'There is no such path.');
    const body = typeof route === 'function' ? await route(seen, response) : route;
    if (body !== undefined) json(response, 200, body);
  });
  await machine.writeProfile([sessionAt(api.url)]);
  return { ...machine, ...api };
}

export function refuse(response: ServerResponse, status: number, message: string): void {
  json(response, status, { code: 'test', message, retryable: false });
}

/** The requests since the last look, one line each, and nothing left of them. */
export function taken(requests: Seen[]): string[] {
  return requests.splice(0).map(({ method, url, body }) => `${method} ${url} ${body}`.trim());
}

/** Those that are no reads. */
export const changesTaken = (requests: Seen[]) => taken(requests).filter((line) => !line.startsWith('GET '));

/** The answer of a route that refuses. */
export function refuses(status: number, message: string) {
  return (_seen: Seen, response: ServerResponse) => refuse(response, status, message);
}
