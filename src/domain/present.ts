/** The fields that have a value: what is null or undefined is left out, as replies and reports leave out what is not known. */
export function present<T extends object>(fields: T): { [Name in keyof T]?: NonNullable<T[Name]> } {
  const known = Object.entries(fields).filter(([, value]) => value !== null && value !== undefined);
  return Object.fromEntries(known) as { [Name in keyof T]?: NonNullable<T[Name]> };
}
