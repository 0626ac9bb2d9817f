/**
 * Registrations of SSH keys, each answered when it is on disk, against what SQLite alone commits on the same disk with
 * the same journal: one row as long as all that a registration leaves, one transaction. No cluster gets it, so
 * that nothing but the write is measured; many people alternate, for nobody has thousands of keys.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startTestIssuer } from '../../test/support/issuer.ts';
import type { CommitOrder, CommitResult } from './commits.ts';
import { twoCores } from './cores.ts';
import type { LoadResult } from './load.ts';
import { lab, people } from './people.ts';
import { program } from './program.ts';
import { alternate, median, medianRatio } from './rounds.ts';
import { registrationBytes } from './row-bytes.ts';
import type { Scratch } from './scratch.ts';
import { configureService, startService } from './service.ts';
import type { Report, Row } from './table.ts';
import { cpuSeconds, writtenBytes } from './usage.ts';
import type { WriteOrder } from './write-load.ts';

const rounds = 5;
const seconds = 1;
/** Rounds that do not count: V8 compiles what is hot, and each person's token is seen for the first time. */
const warming = 2;
const connections = 8;
const aim = 0.5;
const aimBytes = 25_000;
const name = 'SQLite alone';

export async function benchWrites(scratch: Scratch): Promise<Report> {
  const cores = twoCores();
  await using issuer = await startTestIssuer(Date.now);
  const dir = scratch.folder('writes');
  const service = await configureService(dir, { lab, issuer: issuer.url });
  const server = await startService(scratch, service, { pin: cores?.server ?? [] });
  const peopleFile = join(dir, 'people.json');
  const tokens = await Promise.all(people.map((person) => issuer.token(person, {}, 3600)));
  writeFileSync(peopleFile, JSON.stringify(tokens.map((token) => `Bearer ${token}`)));

  const run = async <Result>(pin: readonly string[] | undefined, file: string, order: object) =>
    JSON.parse(await scratch.run([...(pin ?? []), ...program(file, order)])) as Result;
  const write = (connections: number): Promise<LoadResult> => {
    const order: WriteOrder = { port: service.ports.business, peopleFile, connections, seconds };
    return run(cores?.load, 'write-load.ts', order);
  };
  const commit = (): Promise<CommitResult> => {
    const bytes = registrationBytes(service.databaseFile);
    const order: CommitOrder = { file: join(dir, 'reference.db'), bytes, seconds };
    return run(cores?.server, 'commits.ts', order);
  };

  const commits: CommitResult[] = [];
  const spent = { cpuMicros: [] as number[], bytes: [] as number[] };
  const seen = await alternate(warming + rounds, {
    serial: async () => (await write(1)).medianMs,
    reference: async () => {
      const result = await commit();
      commits.push(result);
      return result.medianMs;
    },
    many: async () => {
      const before = { cpu: cpuSeconds(server), bytes: writtenBytes(server.pid) };
      const { perSecond, requests } = await write(connections);
      spent.cpuMicros.push(((cpuSeconds(server) - before.cpu) / requests) * 1e6);
      spent.bytes.push((writtenBytes(server.pid) - before.bytes) / requests);
      return perSecond;
    },
  });
  const bytes = registrationBytes(service.databaseFile);
  await scratch.end(server);

  const counted = (values: readonly number[]) => values.slice(warming);
  const rates = counted(commits.map(({ perSecond }) => perSecond));
  const [serial, alone, many] = [counted(seen.serial), counted(seen.reference), counted(seen.many)];
  const [slower, faster] = [medianRatio(serial, alone), medianRatio(many, rates)];
  const written = counted(spent.bytes);
  const writtenAlone = counted(commits.map((one) => one.writtenBytes));
  const rows: Row[] = [
    {
      row: 'register a key, 1 connection',
      ours: `${median(serial).toFixed(2)} ms`,
      reference: `${median(alone).toFixed(2)} ms  ${name}`,
      ratio: slower,
      aim: `≤ ${1 / aim}`,
      met: slower <= 1 / aim,
    },
    {
      row: `register keys, ${connections} connections`,
      ours: `${median(many).toFixed(0)}/s`,
      reference: `${median(rates).toFixed(0)}/s  ${name}`,
      ratio: faster,
      aim: `≥ ${aim}`,
      met: faster >= aim,
    },
    {
      row: 'bytes of a registration',
      ours: `${(median(written) / 1000).toFixed(0)} kB`,
      reference: `${(median(writtenAlone) / 1000).toFixed(0)} kB  ${name}`,
      ratio: medianRatio(written, writtenAlone),
      aim: `≤ ${aimBytes / 1000} kB`,
      met: median(written) <= aimBytes,
    },
  ];
  const notes = [
    `writes: ${bytes} bytes of rows a transaction on both sides; what we write has the answer in it.`,
    `writes: a registration takes ${median(counted(spent.cpuMicros)).toFixed(0)} µs of processor time.`,
  ];
  return { rows, notes };
}
