/** The `access` and `retention` sections of the configuration: what ends by its age in days. */
import { duration } from './duration.ts';

/** How many days each is kept; left out: for good. */
export interface RetentionConfig {
  commands?: number;
  sessions?: number;
  audit?: number;
  /** The directory that old entries of the audit trail are written to before they are deleted. */
  exportTo?: string;
}

const days = duration('days', 1, 36_500);
const section = (properties: object) => ({ type: 'object', additionalProperties: false, properties });

/** The JSON schemas of the sections. */
export const accessSchema = section({ maxDaysWithoutSignIn: days, keyMaxDays: days });
export const retentionSchema = section({
  // A client repeats a request within minutes, and has to be answered with what it did the first time.
  commands: duration('days', 7, 36_500),
  sessions: days,
  audit: days,
  exportTo: { type: 'string', minLength: 1 },
});

export function readRetention(
  here: (path: string) => string,
  { exportTo, ...kept }: RetentionConfig = {},
): RetentionConfig {
  return { ...kept, ...(exportTo !== undefined && { exportTo: here(exportTo) }) };
}
