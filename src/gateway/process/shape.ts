/** Composable checks of parsed JSON. Fields that a shape does not name are let through. */
export type Check = (value: unknown) => boolean;

export const number: Check = (value) => Number.isSafeInteger(value);
export const flag: Check = (value) => typeof value === 'boolean';
export const record: Check = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

export function text(longest: number): Check {
  return (value) => typeof value === 'string' && value.length <= longest;
}

export function choice(...values: readonly string[]): Check {
  return (value) => typeof value === 'string' && values.includes(value);
}

export function optional(check: Check): Check {
  return (value) => value === undefined || check(value);
}

export function list(check: Check, most: number): Check {
  return (value) => Array.isArray(value) && value.length <= most && value.every(check);
}

export function shape(fields: Record<string, Check>): Check {
  return (value) =>
    record(value) &&
    Object.entries(fields).every(([name, check]) => check((value as Record<string, unknown>)[name]));
}
