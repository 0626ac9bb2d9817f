/** Exchanges recorded from a real API server (Kubernetes 1.34), trimmed: what the fake says is said after these. */
import { readFileSync } from 'node:fs';

export interface Exchange {
  name: string;
  /** `as`: the account; what it may is in `accounts.ts`. */
  request: { as: string; method: string; path: string; body?: Record<string, unknown> };
  response: Answer;
}

export interface Answer {
  status: number;
  headers: Record<string, string>;
  /** JSON, or text. */
  body: unknown;
}

export const recordings = JSON.parse(
  readFileSync(new URL('recordings.json', import.meta.url), 'utf8'),
) as Exchange[];

/** The answer of the exchange called so. */
export function recorded(name: string): Answer {
  const exchange = recordings.find((one) => one.name === name);
  if (!exchange) throw new Error(`there is no recording ${name}`);
  return exchange.response;
}
