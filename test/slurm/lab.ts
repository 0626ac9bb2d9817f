/** A real Slurm cluster for a test file, brought up by scripts/slurm-lab; and why there is none where there is none. */

import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SlurmSettings } from '../../src/domain/slurm/settings.ts';
import { eventually } from '../support/app.ts';
import { limit } from '../support/limit.ts';
import { keygen } from '../support/ssh-keys.ts';

const script = join(import.meta.dirname, '../../scripts/slurm-lab');

/** For `test(…, { skip: noSlurm })`: false where a cluster can be brought up. */
export const noSlurm: string | false = whyNot();

function whyNot(): string | false {
  if (process.getuid?.() !== 0) return 'a Slurm cluster is brought up by root only';
  const missing = [
    'slurmctld',
    'slurmd',
    'slurmdbd',
    'sacctmgr',
    'munged',
    'mariadbd',
    'sshd',
    'ssh',
    'flock',
  ].find(
    (program) =>
      !['/usr/sbin', '/usr/bin', '/sbin', '/bin'].some((directory) => existsSync(join(directory, program))),
  );
  if (missing) return `${missing} is not installed`;
  const namespaces = spawnSync('unshare', ['-m', '-u', '-p', '-f', 'true']);
  return namespaces.status === 0 ? false : 'this machine allows no namespaces';
}

export interface Ran {
  status: number;
  out: string;
}

export interface SlurmLab extends Disposable {
  directory: string;
  port: number;
  hostKey: string;
  identityFile: string;
  /** The settings of a lab file for it. */
  settings(changes?: Partial<SlurmSettings>): SlurmSettings;
  /** Runs a shell command on a host of it. */
  on(host: string, command: string, limitMs?: number): Promise<Ran>;
  /** What it says there. */
  shell(host: string, command: string): Promise<string>;
  /** A file next to slurm.conf. */
  file(name: string): string;
  /** The process of a daemon. */
  pid(daemon: string): string;
  /** Submits a job as ada that goes on, and waits until it runs. */
  runJob(options: string): Promise<string>;
  stateOf(job: string): Promise<string>;
  /** Stops, starts or restarts a daemon. */
  control(verb: 'stop' | 'start' | 'restart', daemon: string): void;
  /** The command that restarts a daemon, for the lab file. */
  restartCommand(daemon: string): string;
}

export interface LabOptions {
  /** The gateway's public key. */
  gatewayKey?: string;
  logins?: string;
  /** Left out: a1 and a2. */
  nodes?: string;
  homes?: 'own' | 'shared';
}

/** On ports of its own, below those that the system gives away; tried once more, for those may be another's. */
export function startSlurmLab(options: LabOptions = {}): SlurmLab {
  try {
    return bringUp(options);
  } catch {
    return bringUp(options);
  }
}

function bringUp(options: LabOptions): SlurmLab {
  const port = 20_000 + 20 * Math.floor(Math.random() * 500);
  const directory = mkdtempSync(join(tmpdir(), 'andromeda-slurm-'));
  const key = keygen('-t', 'ed25519');
  const identityFile = join(directory, 'manage');
  writeFileSync(identityFile, key.privateKey, { mode: 0o600 });
  writeFileSync(`${identityFile}.pub`, key.publicKey);
  writeFileSync(join(directory, 'gateway.pub'), `${options.gatewayKey ?? ''}\n`);
  const wipe = () => execFileSync(script, ['wipe', directory], { timeout: limit(60_000), stdio: 'ignore' });
  try {
    execFileSync(script, ['up', directory], {
      timeout: limit(90_000),
      stdio: ['ignore', 'ignore', 'pipe'],
      env: {
        ...process.env,
        PORT: `${port}`,
        MANAGE: `${identityFile}.pub`,
        GATEWAY: join(directory, 'gateway.pub'),
        LOGINS: options.logins ?? '',
        NODES: options.nodes ?? 'a1 a2',
        HOMES: options.homes ?? 'own',
      },
    });
  } catch (error) {
    wipe();
    throw error;
  }
  const hostKey = readFileSync(join(directory, 'etc/host_key.pub'), 'utf8').trim();
  const restartCommand = (daemon: string) => `${script} restart ${directory} ${daemon}`;
  const control = (verb: string, daemon: string) =>
    void execFileSync(script, [verb, directory, daemon], { timeout: limit(60_000), stdio: 'ignore' });
  const on: SlurmLab['on'] = (host, command, limitMs = 30_000) =>
    new Promise((done) => {
      // As the script does it, without the script: tests ask often.
      const path = { LC_ALL: 'C', PATH: '/usr/sbin:/usr/bin:/sbin:/bin' };
      const env = { ...process.env, ...path, SLURM_CONF: join(directory, 'etc/slurm.conf') };
      const init = readFileSync(join(directory, 'run', `${host}.init`), 'utf8').trim();
      const args = ['-t', init, '-m', '-u', '-p', '--', 'sh', '-c', command];
      execFile('nsenter', args, { timeout: limitMs, env }, (error, stdout, stderr) =>
        done({ status: error ? Number(error.code ?? -1) : 0, out: `${stdout}${stderr}`.trim() }),
      );
    });
  const shell = async (host: string, command: string) => (await on(host, command)).out;
  const stateOf = async (job: string) =>
    (await shell('head', `squeue -h -j ${job} -o %T 2>/dev/null`)) || 'gone';
  return {
    ...{ directory, port, hostKey, identityFile, control, restartCommand, on, shell, stateOf },
    file: (name) => readFileSync(join(directory, 'etc', name), 'utf8'),
    pid: (daemon) => readFileSync(join(directory, 'run', `${daemon}.pid`), 'utf8').trim(),
    async runJob(options) {
      const submit = `cd; sbatch --parsable ${options} --wrap "sleep 500"`;
      const job = await shell('head', `runuser -u ada -- sh -c '${submit}'`);
      await eventually(
        () => stateOf(job),
        (is) => is === 'RUNNING',
      );
      return job;
    },
    settings: (changes = {}) => ({
      login: [{ name: 'login1', host: '127.0.0.1', port, hostKey }],
      controller: { host: '127.0.0.1', port, hostKey },
      compute: { host: '0x7f0000{name}', port, hostKey },
      manage: { identityFile },
      configFile: join(directory, 'etc/slurm.conf'),
      commands: {
        restartLogin: restartCommand('sshd-head'),
        restartController: restartCommand('slurmctld'),
        restartAccounting: restartCommand('slurmdbd'),
        restartCompute: restartCommand('slurmd-{name}'),
      },
      ...changes,
    }),
    [Symbol.dispose]: wipe,
  };
}

/** Stops the sshd of a host until `back`: it takes connections, and says nothing. */
export async function hangSshd(lab: SlurmLab, host: string) {
  const signal = (name: string) => lab.on(host, `kill -${name} $(cat ${lab.directory}/run/sshd-${host}.pid)`);
  const { status, out } = await signal('STOP');
  if (status !== 0) throw new Error(`the sshd of ${host} cannot be stopped: ${out}`);
  const back = async () => void (await signal('CONT'));
  return { back, [Symbol.asyncDispose]: back };
}
