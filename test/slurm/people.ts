/** A driver on a lab's cluster, and manifests for it. */
import assert from 'node:assert/strict';
import type { Manifest, ManifestAccount, SlurmReport } from '../../src/domain/access/manifest.ts';
import type { SlurmConfiguration } from '../../src/domain/slurm/configuration.ts';
import type { SlurmSettings } from '../../src/domain/slurm/settings.ts';
import { createLogger } from '../../src/lib/log.ts';
import { createSlurmDriver, type RealSlurmDriver } from '../../src/sync/slurm/index.ts';
import type { SlurmLab } from './lab.ts';

export const clusterId = '7b6f1f0e-3c39-4a8e-9a55-0d1c2b3a4f50';
export const state = `/var/lib/andromeda-slurm/${clusterId}`;

/** A person with a number, who has a key. */
export function person(
  username: string,
  uid: number,
  changes: Partial<ManifestAccount> = {},
): ManifestAccount {
  const user = {
    userId: `user_${uid}`,
    username,
    uid,
    gid: uid,
    home: `/home/${username}`,
    shell: '/bin/bash',
  };
  return { ...user, loginState: 'ready', keySetGeneration: 1, keyFingerprints: ['SHA256:a'], ...changes };
}

let generation = 0;

/** The next manifest. */
export function manifest(
  accounts: readonly ManifestAccount[],
  slurmConfiguration: SlurmConfiguration = {},
): Manifest {
  generation += 1;
  const versions = {
    generation,
    desiredGeneration: generation,
    listVersion: generation,
    schedulerGeneration: 0,
  };
  return { clusterId, ...versions, slurmConfiguration, accounts };
}

export interface Cluster {
  driver: RealSlurmDriver;
  /** Login nodes of which the gateway was told that they restart. */
  ended: string[];
  observe(): Promise<SlurmReport>;
  /** As the sync loop does it: look (unless it was the last to look), apply, look. */
  apply(manifest: Manifest, signal?: AbortSignal): Promise<SlurmReport>;
}

const limitMs = 90_000;
/** Who looked last. */
let latest: RealSlurmDriver | undefined;
/** What was last reported and logged, for the message of an assertion. */
let lastReport: SlurmReport | undefined;
export const lastLines: string[] = [];
const keptLines = 12;

function logger() {
  if (process.env['ANDROMEDA_TEST_LOG']) return createLogger('debug');
  return createLogger('info', (line) => {
    lastLines.push(line);
    lastLines.splice(0, lastLines.length - keptLines);
  });
}

/** What the driver reported last, and the last lines of its log. */
function whatWasReported(): string {
  const { failure, drifted, manifestGeneration, scheduler } = lastReport ?? {};
  const report = JSON.stringify({ failure, drifted, manifestGeneration, ready: scheduler?.ready });
  return `the last report: ${report}; the log:\n${lastLines.join('')}`;
}

/**
 * `live` unless the settings say otherwise. `fence`: the token of a server among several. `last`: what the process before this one
 * reported. `id`: of another cluster on the same hosts.
 */
export function driverOf(
  lab: SlurmLab,
  changes: Partial<SlurmSettings> = {},
  { fence, last, id = clusterId }: { fence?: number; last?: SlurmReport; id?: string } = {},
): Cluster {
  const ended: string[] = [];
  const driver = createSlurmDriver({
    name: 'beta',
    clusterId: id,
    organization: 'physics',
    settings: lab.settings({ rollout: 'live', ...changes }),
    dataDir: `${lab.directory}/data/${id}`,
    ...{ fence, last },
    endSessions: (loginNode) => ended.push(loginNode),
    log: logger(),
  });
  const limit = () => AbortSignal.timeout(limitMs);
  const observe = async (signal: AbortSignal) => {
    latest = driver;
    lastReport = await driver.observe(signal);
    return lastReport;
  };
  return {
    driver,
    ended,
    observe: () => observe(limit()),
    async apply(next, signal = limit()) {
      if (latest !== driver) await observe(signal);
      await driver.apply(next, signal);
      return observe(signal);
    },
  };
}

/** Names on a host, or in accounting those who may submit, for a comparison. */
export async function accountsOn(lab: SlurmLab, host: string): Promise<string[]> {
  return linesOf(lab, host, `awk -F: '$3 >= 20000 && $3 < 60000 { print $1 ":" $3 }' /etc/passwd | sort`);
}

export async function associations(lab: SlurmLab): Promise<string[]> {
  return linesOf(
    lab,
    'head',
    `sacctmgr -nP show assoc account=physics format=user,grpsubmit | sed -n 's/|$//p' | sort`,
  );
}

async function linesOf(lab: SlurmLab, host: string, command: string): Promise<string[]> {
  const { status, out } = await lab.on(host, command);
  assert.equal(status, 0, `${host}: ${command} ended with ${status}: ${out}`);
  return out.split('\n').filter(Boolean);
}

/** These people on every host and in accounting, and nobody else of ours who is not locked. */
export async function assertConverged(
  lab: SlurmLab,
  hosts: readonly string[],
  people: readonly { username: string; uid: number }[],
): Promise<void> {
  const names = people.map(({ username, uid }) => `${username}:${uid}`).sort();
  const open =
    'awk -F: \'NR == FNR { gone[$1] = $8 == 1; next } $3 > 30000 && $3 < 60000 && !gone[$1] { print $1 ":" $3 }\'';
  const assertNames = (where: string, actual: string[], expected: string[]) =>
    assert.deepEqual(
      actual,
      expected,
      `${where} has [${actual}] and should have [${expected}]; ${whatWasReported()}`,
    );
  await Promise.all(
    hosts.map(async (host) =>
      assertNames(host, await linesOf(lab, host, `${open} /etc/shadow /etc/passwd | sort`), names),
    ),
  );
  assertNames('accounting', await associations(lab), people.map(({ username }) => username).sort());
}
