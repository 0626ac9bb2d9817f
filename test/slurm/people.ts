/** A driver on a lab's cluster, and manifests for it. */
import assert from 'node:assert/strict';
import type { Manifest, ManifestAccount, SlurmReport } from '../../src/domain/access/manifest.ts';
import type { SlurmConfiguration } from '../../src/domain/slurm/configuration.ts';
import type { SlurmSettings } from '../../src/domain/slurm/settings.ts';
import { createLogger } from '../../src/lib/log.ts';
import { createSlurmDriver, type RealSlurmDriver } from '../../src/sync/slurm/index.ts';
import { limit } from '../support/limit.ts';
import type { SlurmLab } from './lab.ts';

export const clusterId = '7b6f1f0e-3c39-4a8e-9a55-0d1c2b3a4f50';
export const state = `/var/lib/andromeda-slurm/${clusterId}`;

/** A person with a number, who has a key. */
export function person(
  username: string,
  uid: number,
  changes: Partial<ManifestAccount> = {},
): ManifestAccount {
  const user = { userId: `user_${uid}`, username, uid, gid: uid, home: `/home/${username}` };
  const keys = { loginState: 'ready' as const, keySetGeneration: 1, keyFingerprints: ['SHA256:a'] };
  return { ...user, ...keys, shell: '/bin/bash', ...changes };
}

let generation = 0;

export function manifest(
  accounts: readonly ManifestAccount[],
  slurmConfiguration: SlurmConfiguration = {},
): Manifest {
  generation += 1;
  const versions = { generation, desiredGeneration: generation, listVersion: generation };
  return { clusterId, ...versions, schedulerGeneration: 0, slurmConfiguration, accounts };
}

export type Cluster = ReturnType<typeof driverOf>;

/** Who looked last. */
let latest: RealSlurmDriver | undefined;
/** What was last reported and logged, for the message of an assertion. */
let lastReport: SlurmReport | undefined;
export const lastLines: string[] = [];
const log = createLogger('info', (line) => {
  lastLines.push(line);
  lastLines.splice(0, lastLines.length - 12);
});

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
) {
  /** Login nodes of which the gateway was told that they restart. */
  const ended: string[] = [];
  const driver = createSlurmDriver({
    name: 'beta',
    clusterId: id,
    organization: 'physics',
    settings: lab.settings({ rollout: 'live', ...changes }),
    dataDir: `${lab.directory}/data/${id}`,
    ...{ fence, last },
    gateway: { hostname: 'gw.example.org', port: 2222, url: 'https://lab.example.org' },
    endSessions: (loginNode) => ended.push(loginNode),
    log,
  });
  const observe = async () => {
    latest = driver;
    lastReport = await driver.observe(inTime());
    return lastReport;
  };
  /** As the sync loop does it: look (unless it was the last to look), apply, look. */
  const apply = async (next: Manifest) => {
    if (latest !== driver) await observe();
    await driver.apply(next, inTime());
    return observe();
  };
  return {
    ...{ driver, ended, observe, apply },
    /** The same, after which everything is as it should be. */
    async converge(next: Manifest) {
      const report = await apply(next);
      assert.deepEqual([report.failure, report.drifted], [null, undefined], whatWasReported());
      return report;
    },
  };
}

/** What the cluster's condition is, and why. */
export const statusOf = ({ scheduler }: SlurmReport) =>
  `${scheduler?.ready?.status} ${scheduler?.ready?.reason}`;

/** For a change of the driver that is not to take for ever. */
export const inTime = () => AbortSignal.timeout(limit(90_000));

/** Names on a host, or in accounting those who may submit, for a comparison. */
export async function accountsOn(lab: SlurmLab, host: string): Promise<string[]> {
  return linesOf(lab, host, `awk -F: '$3 >= 20000 && $3 < 60000 { print $1 ":" $3 }' /etc/passwd | sort`);
}

export async function associations(lab: SlurmLab): Promise<string[]> {
  const command = 'sacctmgr -nP show assoc account=physics format=user,grpsubmit';
  return linesOf(lab, 'head', `${command} | sed -n 's/|$//p' | sort`);
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
  const open =
    'awk -F: \'NR == FNR { gone[$1] = $8 == 1; next } $3 > 30000 && $3 < 60000 && !gone[$1] { print $1 ":" $3 }\'';
  const found = hosts.map((host) => linesOf(lab, host, `${open} /etc/shadow /etc/passwd | sort`));
  const actual = await Promise.all([...found, associations(lab)]);
  const names = people.map(({ username, uid }) => `${username}:${uid}`).sort();
  const expected = [...hosts.map(() => names), people.map(({ username }) => username).sort()];
  const where = `${hosts} and accounting have ${JSON.stringify(actual)}`;
  assert.deepEqual(actual, expected, `${where}; ${whatWasReported()}`);
}
