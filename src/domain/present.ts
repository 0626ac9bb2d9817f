/** Converts records to the form of replies and reports. */

type Absent<Value> = null extends Value ? true : undefined extends Value ? true : false;
type Present<T> = { [Name in keyof T as Absent<T[Name]> extends true ? never : Name]: T[Name] } & {
  [Name in keyof T as Absent<T[Name]> extends true ? Name : never]?: NonNullable<T[Name]>;
};

/** The fields that have a value: replies and reports leave out null and undefined fields. */
export function present<T extends object>(fields: T): Present<T> {
  const known: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields))
    if (value !== null && value !== undefined) known[name] = value;
  return known as Present<T>;
}

type SnakeCase<Name extends string> = Name extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${SnakeCase<Rest>}`
  : Name;

/** A cache: lists of thousands of records have the same few field names. */
const snakeNames = new Map<string, string>();

/** The named fields of a record with snake_case names, as in the APIs. */
export function snakeCased<T extends object, Name extends keyof T & string>(
  record: T,
  names: readonly Name[],
) {
  const shown: Record<string, unknown> = {};
  for (const name of names) {
    const snakeName = snakeNames.get(name) ?? name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    snakeNames.set(name, snakeName);
    shown[snakeName] = record[name];
  }
  return shown as { [One in Name as SnakeCase<One>]: T[One] };
}
