/** Records as replies and reports have them. */

type Absent<Value> = null extends Value ? true : undefined extends Value ? true : false;
type Present<T> = { [Name in keyof T as Absent<T[Name]> extends true ? never : Name]: T[Name] } & {
  [Name in keyof T as Absent<T[Name]> extends true ? Name : never]?: NonNullable<T[Name]>;
};

/** The fields that have a value: what is null or undefined is left out, as replies and reports leave out what is not known. */
export function present<T extends object>(fields: T): Present<T> {
  const known: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields))
    if (value !== null && value !== undefined) known[name] = value;
  return known as Present<T>;
}

type SnakeCase<Name extends string> = Name extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${SnakeCase<Rest>}`
  : Name;

/** Lists of thousands of records have the same few names. */
const snakeNames = new Map<string, string>();

/** Some fields of a record by their names in snake_case, as the APIs have them. */
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
