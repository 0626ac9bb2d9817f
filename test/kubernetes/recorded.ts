/**
 * Exchanges recorded from a real API server (Kubernetes 1.34), trimmed: what the fake says is said after these. One a line of
 * `recordings.jsonl`, as `JSON.stringify` writes an exchange.
 */
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

export const recordings = readFileSync(new URL('recordings.jsonl', import.meta.url), 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line) as Exchange);

/** The answer of the exchange called so. */
export function recorded(name: string): Answer {
  const exchange = recordings.find((one) => one.name === name);
  if (!exchange) throw new Error(`there is no recording ${name}`);
  return exchange.response;
}
