// Writes the TypeScript types of both APIs from their YAML documents; with --check, fails when they differ.
import { readFileSync, writeFileSync } from 'node:fs';
import openapiTS, { astToString } from 'openapi-typescript';

const header = '// Made by `npm run generate` from the YAML documents in openapi/. Edit those.\n\n';
const stale: string[] = [];
for (const api of ['business', 'platform']) {
  const target = new URL(`../src/${api}/openapi.ts`, import.meta.url);
  const types = header + astToString(await openapiTS(new URL(`../openapi/${api}.yaml`, import.meta.url)));
  if (!process.argv.includes('--check')) writeFileSync(target, types);
  else if (readFileSync(target, 'utf8') !== types) stale.push(`src/${api}/openapi.ts`);
}
if (stale.length > 0) {
  console.error(`${stale.join(' and ')} no longer match the YAML; run: npm run generate`);
  process.exit(1);
}
