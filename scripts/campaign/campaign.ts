/** Rounds: start the service, let people write, end it at a random moment, look at what is left. */
import type { ChildProcess } from 'node:child_process';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startTestIssuer } from '../../test/support/issuer.ts';
import { createScratch, type Scratch } from '../bench/scratch.ts';
import { configureService, type Service, startService } from '../bench/service.ts';
import { findFaults } from './check.ts';
import { createDisk, type Disk } from './disk.ts';
import { endLeftBehind } from './left-behind.ts';
import { createPeople, type People } from './people.ts';

export type Kind = 'kill' | 'power';

export interface Campaign {
  kind: Kind;
  /** Whether there is another round, after so many. */
  goesOn(rounds: number): boolean;
  onRound?(round: number, text: string): void;
  /** Of the service, besides this process's own; may put something into the directory. */
  env(dir: string): Record<string, string>;
}

export interface Outcome {
  rounds: number;
  /** Writes that were answered. */
  answers: number;
  /** What was missing or broken, a sentence each. */
  faults: string[];
}

/** People write for as long, in ms, between the first answer and the end. */
const writing = { least: 0, most: 2_000 };
/** For the first answer. */
const patienceMs = 20_000;
const usernames = Array.from({ length: 50 }, (_, index) => `person-${index + 1}`);
const members = usernames.map((username, index) => ({
  email: `${username}@physics.example`,
  role: index === 0 ? 'owner' : 'member',
  username,
}));
const lab = { organizations: [{ slug: 'physics', name: 'Physics', members }] };

/** Goes on until `goesOn` says no, or something is missing or broken. */
export async function runCampaign({ kind, goesOn, onRound, env: makeEnv }: Campaign): Promise<Outcome> {
  await using scratch = createScratch();
  await using issuer = await startTestIssuer(Date.now);
  const dir = scratch.folder('campaign');
  using disk = kind === 'power' ? createDisk(dir) : undefined;
  const service = await configureService(disk?.directory ?? dir, { lab, issuer: issuer.url });
  disk?.settle();
  const people = createPeople({
    url: `http://127.0.0.1:${service.ports.business}`,
    tokens: await Promise.all(usernames.map((name) => issuer.token(name, {}, 24 * 3600))),
  });
  const env = makeEnv(dir);
  const outcome: Outcome = { rounds: 0, answers: 0, faults: [] };
  while (outcome.faults.length === 0 && goesOn(outcome.rounds)) {
    outcome.rounds++;
    const before = people.ledger.answers;
    const ms = writing.least + Math.random() * (writing.most - writing.least);
    try {
      await writeUntilTheEnd(scratch, service, { people, disk, ms, env });
      outcome.faults.push(
        ...people.ledger.unexpected,
        ...(await findFaults(service.databaseFile, people.ledger)),
      );
    } catch (error) {
      outcome.faults.push(error instanceof Error ? error.message : String(error));
    }
    outcome.answers = people.ledger.answers;
    onRound?.(outcome.rounds, `${outcome.answers - before} writes answered in ${ms.toFixed(0)} ms`);
  }
  await endLeftBehind(dirname(service.databaseFile));
  return outcome;
}

interface Round {
  people: People;
  disk: Disk | undefined;
  /** Until the end. */
  ms: number;
  env: Record<string, string>;
}

async function writeUntilTheEnd(
  scratch: Scratch,
  service: Service,
  { people, disk, ms, env }: Round,
): Promise<void> {
  const child = await startService(scratch, service, { env: { ...process.env, ...env } });
  const ended = new AbortController();
  const working = people.work(ended.signal);
  // Half of the time the system writes the database's own file early, and what it depends on is not on the disk yet.
  const reordering =
    disk && Math.random() < 0.5 ? disk.writeEarly(service.databaseFile, ended.signal) : undefined;
  const before = people.ledger.answers;
  const patience = performance.now() + patienceMs;
  while (people.ledger.answers === before && performance.now() < patience) await sleep(1);
  await sleep(ms);
  if (disk) {
    await disk.cutPower(people.forget);
  }
  kill(child);
  ended.abort();
  await Promise.all([working, reordering, closed(child)]);
  if (!disk) return;
  await endLeftBehind(disk.directory);
  await disk.restorePower();
}

function kill(child: ChildProcess): void {
  if (child.pid === undefined || child.exitCode !== null) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // It has ended by itself, as it should where the disk is gone.
  }
}

async function closed(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null)
    await new Promise((done) => child.once('close', done));
}
