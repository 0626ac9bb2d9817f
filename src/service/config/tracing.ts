/** The `tracing` section of the configuration: where traces are sent. */
import { invalid, type NamedFiles } from './named-files.ts';
import { file, pattern, type Schema, section, type Value } from './schema.ts';

export interface TracingSettings {
  /** Of traces, such as https://collector.example.org:4318/v1/traces. */
  url: URL;
  headers: Readonly<Record<string, string>>;
  /** PEM: the authorities to trust, instead of the well-known ones. */
  ca: Buffer | undefined;
  /** How many of the traces that begin here are kept, from 0 to 1. */
  sampleRatio: number;
}

export const tracingSchema = section(
  {
    // Headers are secrets, and so cross no network in the clear.
    otlp: pattern(
      '^(https://[^/?#@\\s]+|http://(127\\.0\\.0\\.1|localhost|\\[::1\\])(:\\d+)?)(/[^?#\\s]*)?$',
      'as https://collector.example.org:4318/v1/traces (http only to this machine), without user, password and query; what is secret goes into tracing.headersFile',
    ),
    headersFile: file,
    ca: file,
    sampleRatio: { type: 'number', minimum: 0, maximum: 1 } as Schema<number>,
  },
  ['otlp'],
);

/** The section, which fits the schema. */
export function readTracing(
  { otlp, headersFile, ca, sampleRatio = 1 }: Value<typeof tracingSchema>,
  files: NamedFiles,
): TracingSettings {
  const url = new URL(otlp);
  if (url.pathname === '/') url.pathname = '/v1/traces';
  return {
    url,
    headers: headersFile === undefined ? {} : readHeaders('tracing.headersFile', headersFile, files),
    ca: files.read('tracing.ca', ca),
    sampleRatio,
  };
}

/** One `Name: value` a line. Throws `invalid_request` with a sentence, which quotes nothing of it. */
function readHeaders(name: string, path: string, files: NamedFiles): Record<string, string> {
  const lines = files.readSecretLines(name, path);
  const pairs = lines.map((line) => /^([A-Za-z0-9-]{1,64}):\s*([\x20-\x7e]{1,4096})$/.exec(line));
  if (pairs.length === 0 || pairs.length > 16 || pairs.includes(null))
    throw invalid(
      `${name}: ${files.at(path)} must hold headers, one "Name: value" a line, such as "Authorization: Bearer …".`,
    );
  return Object.fromEntries(pairs.map((pair) => [pair?.[1] ?? '', pair?.[2] ?? '']));
}
