/** What rows have in a column, or in several: `fieldsOf(people, 'name')` are names, `fieldsOf(people, 'name', 'role')` are pairs. */
export function fieldsOf<Row, Name extends keyof Row>(
  rows: readonly Row[] | undefined,
  name: Name,
): Row[Name][];
export function fieldsOf<Row>(rows: readonly Row[] | undefined, ...names: (keyof Row)[]): unknown[][];
export function fieldsOf<Row>(rows: readonly Row[] | undefined, ...names: (keyof Row)[]): unknown[] {
  if (!rows) throw new Error('there are no rows');
  const [only, ...others] = names;
  if (only !== undefined && others.length === 0) return rows.map((row) => row[only]);
  return rows.map((row) => names.map((name) => row[name]));
}
