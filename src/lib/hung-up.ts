/** Clients that are gone by the time that their request is read. */
import type { ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';

/** The event loop reads a request in one iteration, and in one of the next that its connection has ended. */
const iterations = 4;

/**
 * Whether the client of a request that was just read has hung up before. A server that stood still for a while reads both when it goes
 * on: the client has long asked another one, and what is good for one use must not seem to be used twice.
 */
export async function hasHungUp(response: ServerResponse): Promise<boolean> {
  for (let done = 0; done < iterations; done += 1) await setImmediate();
  return response.closed;
}
