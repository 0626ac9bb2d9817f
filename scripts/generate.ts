// Makes what the code reads from the YAML documents of both APIs: TypeScript types, and the same documents as JSON,
// which a start reads in a millisecond where parsing YAML takes a hundred. Makes Kysely's types of the tables from the
// migrations. With --check, fails when they differ.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { Kysely, SqliteDialect } from 'kysely';
import openapiTS, { astToString } from 'openapi-typescript';
import { parse } from 'yaml';
import { firstSchema, migrations } from '../src/store/migrations/index.ts';

const header = '// Made by `npm run generate` from the YAML documents in openapi/. Edit those.\n\n';
const made = new Map<string, string>();
for (const api of ['business', 'platform']) {
  const source = new URL(`../openapi/${api}.yaml`, import.meta.url);
  made.set(`src/api/generated/${api}.ts`, header + astToString(await openapiTS(source)));
  made.set(`src/api/generated/${api}.json`, `${JSON.stringify(parse(readFileSync(source, 'utf8')))}\n`);
}
made.set('src/store/generated/schema.ts', await tableTypes());

if (!process.argv.includes('--check')) {
  for (const [file, text] of made) {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
} else {
  const stale = [...made].filter(([file, text]) => !existsSync(file) || readFileSync(file, 'utf8') !== text);
  if (stale.length > 0) {
    const names = stale.map(([file]) => file).join(', ');
    console.error(`Not as the YAML documents or the migrations have it: ${names}. Run: npm run generate`);
    process.exit(1);
  }
}

/** The tables of a database that has all migrations, with what the statements say of them in comments. */
async function tableTypes(): Promise<string> {
  const database = new Database(':memory:');
  const db = new Kysely<unknown>({ dialect: new SqliteDialect({ database }) });
  for (const { up } of Object.values(migrations)) await up(db);
  const { documentation, values } = commentsOf(firstSchema);
  const documented = (indent: string, name: string) =>
    documentation.has(name) ? `${indent}/** ${documentation.get(name)} */\n` : '';
  const tables = database
    .prepare("select name from sqlite_schema where type = 'table' and name not like 'sqlite%' order by rowid")
    .pluck()
    .all() as string[];
  const texts = tables.map((table) => {
    const columns = database.pragma(`table_info(${table})`) as {
      name: string;
      type: string;
      notnull: number;
    }[];
    const fields = columns.map(({ name, type, notnull }) => {
      const plain = type.toLowerCase() === 'integer' ? 'number' : 'string';
      const held = values.get(`${table}.${name}`) ?? plain;
      const field = `    ${name}: ${held}${notnull ? '' : ' | null'};\n`;
      return documented('    ', `${table}.${name}`) + field;
    });
    return `${documented('  ', table)}  ${table}: {\n${fields.join('')}  };\n`;
  });
  await db.destroy();
  const first = '// Made by `npm run generate` from the migrations in src/store/migrations/. Edit those.\n\n';
  return `${first}/** The tables as Kysely sees them. */\nexport interface Schema {\n${texts.join('')}}\n`;
}

/** By `table` and `table.column`: the comment before each, and what is after a column's definition. */
function commentsOf(statements: string) {
  const documentation = new Map<string, string>();
  const values = new Map<string, string>();
  let table = '';
  let before: string[] = [];
  for (const line of statements.split('\n')) {
    const comment = /^ *-- (.*)$/.exec(line)?.[1];
    if (comment !== undefined) {
      before.push(comment);
      continue;
    }
    const [, made] = /^create table (\w+) \($/.exec(line) ?? [];
    const [, column, , held] = /^ {2}(\w+) (text|integer)\b[^-]*(?:-- (.*))?$/.exec(line) ?? [];
    if (made) table = made;
    const name = made ?? (column && `${table}.${column}`);
    if (name && before.length > 0) documentation.set(name, before.join(' '));
    if (name && held) values.set(name, held);
    before = [];
  }
  return { documentation, values };
}
