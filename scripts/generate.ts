// Makes what the code reads from the YAML documents of both APIs: TypeScript types, and the same documents as JSON,
// which a start reads in a millisecond where parsing YAML takes a hundred. With --check, fails when they differ.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import openapiTS, { astToString } from 'openapi-typescript';
import { parse } from 'yaml';

const header = '// Made by `npm run generate` from the YAML documents in openapi/. Edit those.\n\n';
const made = new Map<string, string>();
for (const api of ['business', 'platform']) {
  const source = new URL(`../openapi/${api}.yaml`, import.meta.url);
  made.set(`src/api/generated/${api}.ts`, header + astToString(await openapiTS(source)));
  made.set(`src/api/generated/${api}.json`, `${JSON.stringify(parse(readFileSync(source, 'utf8')))}\n`);
}
if (!process.argv.includes('--check')) {
  for (const [file, text] of made) {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
} else {
  const stale = [...made].filter(([file, text]) => !existsSync(file) || readFileSync(file, 'utf8') !== text);
  if (stale.length > 0) {
    const names = stale.map(([file]) => file).join(', ');
    console.error(`Not as the YAML documents have it: ${names}. Run: npm run generate`);
    process.exit(1);
  }
}
