/** JSON schemas of settings. A setting's type is derived from its schema, so that each is described once. */
import type { FuncKeywordDefinition } from 'ajv';
import { durationMs } from '../../domain/units.ts';

declare const value: unique symbol;

export interface Schema<T> {
  readonly [value]?: T;
  readonly [keyword: string]: unknown;
}

export type Value<S> = S extends Schema<infer T> ? T : never;

export const text: Schema<string> = { type: 'string', minLength: 1 };
export const file: Schema<string> = { ...text, isFile: true };
export const flag: Schema<boolean> = { type: 'boolean' };

export function pattern(pattern: string, form?: string): Schema<string> {
  return { type: 'string', pattern, form };
}

export function integer(minimum: number, maximum: number): Schema<number> {
  return { type: 'integer', minimum, maximum };
}

export function oneOf<T extends string>(...values: readonly T[]): Schema<T> {
  return { type: 'string', enum: values };
}

export function list<T>(
  items: Schema<T>,
  bounds: { minItems?: number; maxItems?: number } = {},
): Schema<T[]> {
  return { type: 'array', items, ...bounds };
}

type Properties = Record<string, Schema<unknown>>;
type Section<P extends Properties, Required extends keyof P> = {
  [Name in Required]: Value<P[Name]>;
} & { [Name in Exclude<keyof P, Required>]?: Value<P[Name]> };

export function section<const P extends Properties, Required extends keyof P = never>(
  properties: P,
  required: readonly Required[] = [],
): Schema<Section<P, Required>> {
  return { type: 'object', additionalProperties: false, required, properties };
}

export function listFiles(schema: Schema<unknown>, given: unknown): string[] {
  if (schema['isFile']) return typeof given === 'string' ? [given] : [];
  const properties = Object.entries((schema['properties'] ?? {}) as Properties);
  return properties.flatMap(([name, one]) => listFiles(one, (given as Record<string, unknown>)?.[name]));
}

const unitMs = { seconds: 1000, hours: 3_600_000, days: 86_400_000 };

export interface Bounds {
  unit: keyof typeof unitMs;
  minimum: number;
  maximum: number;
}

/** A duration: a number in the unit of the setting's name (`keyMaxDays: 730`), or a text (`730d`). Days are whole. */
export function duration(unit: Bounds['unit'], minimum: number, maximum: number): Schema<number> {
  return { duration: { unit, minimum, maximum } };
}

export function durationForm({ unit, minimum, maximum }: Bounds): string {
  const whole = unit === 'days' ? 'whole ' : '';
  return `${minimum} to ${maximum} ${whole}${unit}, such as 30 or 30${unit.charAt(0)}`;
}

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
