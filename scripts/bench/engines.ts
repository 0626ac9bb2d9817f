/**
 * The APIs of the service on a PostgreSQL of this host's own against the same service on SQLite's file: what people ask all
 * day, and registrations of SSH keys, each answered when it is on disk.
 */
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startTestIssuer } from '../../test/support/issuer.ts';
import { createPostgres, missingPostgres } from '../../test/support/postgres-server.ts';
import { createClient } from './client.ts';
import { type Cores, twoCores } from './cores.ts';
import type { LoadOrder, LoadResult } from './load.ts';
import { lab, people } from './people.ts';
import { program } from './program.ts';
import { alternate, median, medianRatio } from './rounds.ts';
import type { Scratch } from './scratch.ts';
import { configureService, type Service, startService } from './service.ts';
import { durable } from './store.ts';
import type { Report, Row } from './table.ts';
import type { WriteOrder } from './write-load.ts';

const rounds = 5;
const seconds = 1;
/** Rounds that do not count: V8 compiles what is hot, and statements are prepared. */
const warming = 2;
const reading = 32;
const writing = 8;

type Measure = (service: Service) => Promise<LoadResult>;

export async function benchEngines(scratch: Scratch): Promise<Report> {
  const missing = missingPostgres();
  if (missing !== undefined) return { rows: [], notes: [`engines: left out: ${missing}.`] };
  // PostgreSQL runs as somebody else than root.
  chmodSync(scratch.dir, 0o711);
  const cores = twoCores();
  await using postgres = await createPostgres(scratch.dir, { more: durable });
  await using issuer = await startTestIssuer(Date.now);
  const start = async (folder: string, database?: string) => {
    const service = await configureService(scratch.folder(folder), { lab, issuer: issuer.url, database });
    return { service, server: await startService(scratch, service, { pin: cores?.server ?? [] }) };
  };
  const shared = await start('engines-postgres', postgres.url());
  const file = await start('engines-sqlite');
  const tokens = await Promise.all(people.map((person) => issuer.token(person, {}, 3600)));
  const measures = measuresOf(scratch, cores, tokens);
  const rows: Row[] = [];
  for (const [row, measure, key] of [
    ['API: GET /me, 1 connection', measures.read(1), 'medianMs'],
    [`API: GET /me, ${reading} connections`, measures.read(reading), 'perSecond'],
    ['API: register a key, 1 connection', measures.write(1), 'medianMs'],
    [`API: register keys, ${writing} connections`, measures.write(writing), 'perSecond'],
  ] as const)
    rows.push(await compare(row, measure, key, { shared: shared.service, file: file.service }));
  await scratch.end(shared.server);
  await scratch.end(file.server);
  return { rows, notes: [] };
}

function measuresOf(scratch: Scratch, cores: Cores | undefined, tokens: readonly string[]) {
  const peopleFile = join(scratch.folder('engines'), 'people.json');
  writeFileSync(peopleFile, JSON.stringify(tokens.map((token) => `Bearer ${token}`)));
  const run = async (file: string, order: LoadOrder | WriteOrder) =>
    JSON.parse(await scratch.run([...(cores?.load ?? []), ...program(file, order)])) as LoadResult;
  return {
    read:
      (connections: number): Measure =>
      ({ ports: { business: port } }) => {
        const { request } = createClient(port, `Bearer ${tokens[0]}`);
        return run('load.ts', { port, request: request('/me'), connections, seconds });
      },
    write:
      (connections: number): Measure =>
      ({ ports: { business: port } }) =>
        run('write-load.ts', { port, peopleFile, connections, seconds }),
  };
}

async function compare(
  row: string,
  measure: Measure,
  key: 'medianMs' | 'perSecond',
  { shared, file }: { shared: Service; file: Service },
): Promise<Row> {
  const seen = await alternate(warming + rounds, {
    postgres: async () => (await measure(shared))[key],
    sqlite: async () => (await measure(file))[key],
  });
  const [ours, reference] = [seen.postgres.slice(warming), seen.sqlite.slice(warming)];
  const text = (value: number) => (key === 'medianMs' ? `${value.toFixed(2)} ms` : `${value.toFixed(0)}/s`);
  return {
    row,
    ours: `${text(median(ours))}  PostgreSQL`,
    reference: `${text(median(reference))}  SQLite`,
    ratio: medianRatio(ours, reference),
    aim: '',
  };
}
