/**
 * The changes that make the source that of the version after this one: another number, another text in the units, and one more step
 * of the schema, which hangs, fails, or is not there, as /etc/andromeda/step says.
 */
import { readFileSync } from 'node:fs';
import { relative } from 'node:path';
import type { Plugin } from 'esbuild';

export const nextVersion = '9.9.9';

/** Behind the migrations, which import what it needs of Kysely. */
const step = `
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
let order = '';
try { order = readFileSync('/etc/andromeda/step', 'utf8').trim(); } catch {}
if (order !== 'none') migrations['9999-next'] = {
  async up(db) {
    await sql.raw('create table next_version (id integer primary key)').execute(db);
    if (order === 'fail') throw new Error('the step fails');
    if (order === 'hang') await sleep(900_000);
  },
};
`;

const changes: Record<string, (text: string) => string> = {
  'package.json': (text) => JSON.stringify({ ...JSON.parse(text), version: nextVersion }),
  'src/store/migrations/index.ts': (text) => text + step,
  'src/service/host/unit/service-unit.ts': (text) =>
    text.replaceAll(/^Description=.*$/gm, 'Description=the next one'),
};

const plugin: Plugin = {
  name: 'next-version',
  setup(build) {
    const root = build.initialOptions.absWorkingDir ?? '';
    build.onLoad({ filter: /\/(package\.json|index\.ts|service-unit\.ts)$/ }, ({ path }) => {
      const change = changes[relative(root, path)];
      if (!change) return undefined;
      return { contents: change(readFileSync(path, 'utf8')), loader: path.endsWith('.json') ? 'json' : 'ts' };
    });
  },
};
export default plugin;
