/** Settings that are a duration: a number of the unit that their name has (`keyMaxDays: 730`), or a text (`730d`). */
import type { FuncKeywordDefinition } from 'ajv';
import { durationMs } from '../../domain/units.ts';

const unitMs = { seconds: 1000, days: 86_400_000 };

export interface Bounds {
  unit: keyof typeof unitMs;
  minimum: number;
  maximum: number;
}

/** The JSON schema of one, with its bounds in its unit. Days are whole. */
export function duration(unit: Bounds['unit'], minimum: number, maximum: number): { duration: Bounds } {
  return { duration: { unit, minimum, maximum } };
}

/** How a fault ends, after "must be". */
export function durationForm({ unit, minimum, maximum }: Bounds): string {
  const whole = unit === 'days' ? 'whole ' : '';
  return `${minimum} to ${maximum} ${whole}${unit}, such as 30 or 30${unit.charAt(0)}`;
}

/** Checks one, and puts the number of its unit in the place of a text. */
export const durationKeyword: FuncKeywordDefinition = {
  keyword: 'duration',
  modifying: true,
  errors: false,
  validate({ unit, minimum, maximum }: Bounds, given: unknown, _schema, context) {
    const ms = typeof given === 'string' ? durationMs(given) : undefined;
    const value = ms === undefined ? given : ms / unitMs[unit];
    if (typeof value !== 'number' || !(value >= minimum && value <= maximum)) return false;
    if (unit === 'days' && !Number.isInteger(value)) return false;
    if (context) context.parentData[context.parentDataProperty] = value;
    return true;
  },
};
