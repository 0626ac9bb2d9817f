/** The `tracing` section of the configuration: where traces are sent. */
import { DomainError } from '../../domain/error.ts';
import type { NamedFiles } from './named-files.ts';

export interface TracingSettings {
  /** Of traces, such as https://collector.example.org:4318/v1/traces. */
  url: URL;
  headers: Readonly<Record<string, string>>;
  /** PEM: the authorities to trust, instead of the well-known ones. */
  ca: Buffer | undefined;
  /** How many of the traces that begin here are kept, from 0 to 1. */
  sampleRatio: number;
}

export interface RawTracing {
  otlp: string;
  headersFile?: string;
  ca?: string;
  sampleRatio?: number;
}

/** The JSON schema of the section. */
export const tracingSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['otlp'],
  properties: {
    // Headers are secrets, and so cross no network in the clear.
    otlp: {
      type: 'string',
      form: 'as https://collector.example.org:4318/v1/traces (http only to this machine), without user, password and query; what is secret goes into tracing.headersFile',
      pattern: '^(https://[^/?#@\\s]+|http://(127\\.0\\.0\\.1|localhost|\\[::1\\])(:\\d+)?)(/[^?#\\s]*)?$',
    },
    headersFile: { type: 'string', minLength: 1 },
    ca: { type: 'string', minLength: 1 },
    sampleRatio: { type: 'number', minimum: 0, maximum: 1 },
  },
};

/** The section's files, as it names them. */
export function listTracingFiles({ headersFile, ca }: Partial<RawTracing> = {}): string[] {
  return [headersFile, ca].filter((path) => path !== undefined);
}

/** The section, which fits the schema. */
export function readTracing(
  { otlp, headersFile, ca, sampleRatio = 1 }: RawTracing,
  { at, read, readSecret }: NamedFiles,
): TracingSettings {
  const url = new URL(otlp);
  if (url.pathname === '/') url.pathname = '/v1/traces';
  const name = 'tracing.headersFile';
  return {
    url,
    headers:
      headersFile === undefined ? {} : readHeaders(name, at(headersFile), readSecret(name, at(headersFile))),
    ca: ca === undefined ? undefined : read('tracing.ca', at(ca)),
    sampleRatio,
  };
}

/** One `Name: value` a line. Throws `invalid_request` with a sentence, which quotes nothing of it. */
function readHeaders(name: string, path: string, content: Buffer): Record<string, string> {
  const lines = content
    .toString('latin1')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  const pairs = lines.map((line) => /^([A-Za-z0-9-]{1,64}):\s*([\x20-\x7e]{1,4096})$/.exec(line));
  if (pairs.length === 0 || pairs.length > 16 || pairs.includes(null))
    throw new DomainError(
      'invalid_request',
      `${name}: ${path} must hold headers, one "Name: value" a line, such as "Authorization: Bearer …".`,
    );
  return Object.fromEntries(pairs.map((pair) => [pair?.[1] ?? '', pair?.[2] ?? '']));
}
