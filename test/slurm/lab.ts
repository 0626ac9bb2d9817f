/** A real Slurm cluster for a test file, brought up by scripts/slurm-lab; and why there is none where there is none. */
import assert from 'node:assert/strict';
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SlurmSettings } from '../../src/domain/slurm/settings.ts';
import { limit } from '../support/limit.ts';
import { keygen } from '../support/ssh-keys.ts';

const script = join(import.meta.dirname, '../../scripts/slurm-lab');

/** Whether a `.full.test.ts` was started, which has what takes long as well. */
export const isFull = process.argv[1]?.endsWith('.full.test.ts') === true;

/** For `test(…, { skip: noSlurm })`: false where a cluster can be brought up. */
export const noSlurm: string | false = whyNot();

function whyNot(): string | false {
  if (process.getuid?.() !== 0) return 'a Slurm cluster is brought up by root only';
  const programs = 'slurmctld slurmd slurmdbd sacctmgr munged mariadbd sshd ssh flock'.split(' ');
  const directories = ['/usr/sbin', '/usr/bin', '/sbin', '/bin'];
  const isThere = (program: string) => directories.some((directory) => existsSync(join(directory, program)));
  const missing = programs.find((program) => !isThere(program));
  if (missing) return `${missing} is not installed`;
  const namespaces = spawnSync('unshare', ['-m', '-u', '-p', '-f', 'true']);
  return namespaces.status === 0 ? false : 'this machine allows no namespaces';
}

export type SlurmLab = ReturnType<typeof bringUp>;

/** Left out: the nodes a1 and a2, no logins, and each host with homes of its own. */
type LabOptions = Partial<Record<'NODES' | 'LOGINS' | 'HOMES', string>>;

/** On ports of its own, below those that the system gives away; tried once more, for those may be another's. */
export function startSlurmLab(options: LabOptions = {}): SlurmLab {
  try {
    return bringUp(options);
  } catch {
    return bringUp(options);
  }
}

function bringUp(options: LabOptions) {
  const port = 20_000 + 20 * Math.floor(Math.random() * 500);
  const directory = mkdtempSync(join(tmpdir(), 'andromeda-slurm-'));
  const key = keygen('-t', 'ecdsa');
  const identityFile = join(directory, 'manage');
  writeFileSync(identityFile, key.privateKey, { mode: 0o600 });
  writeFileSync(`${identityFile}.pub`, key.publicKey);
  const wipe = () => execFileSync(script, ['wipe', directory], { timeout: limit(60_000), stdio: 'ignore' });
  try {
    execFileSync(script, ['up', directory], {
      timeout: limit(150_000),
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...process.env, PORT: `${port}`, MANAGE: `${identityFile}.pub`, ...options },
    });
  } catch (error) {
    wipe();
    throw error;
  }
  const hostKeyOf = (type: string) =>
    readFileSync(join(directory, `etc/host_key_${type}.pub`), 'utf8').trim();
  // The gateway takes one of this kind only; scripts go to hosts by the other, which is faster.
  const hostKey = hostKeyOf('ed25519');
  const manage = { port, hostKey: hostKeyOf('ecdsa') };
  /** The command that restarts a daemon, for the lab file. */
  const restartCommand = (daemon: string) => `${script} restart ${directory} ${daemon}`;
  /** Runs a shell command on a host of it. */
  const on = (host: string, command: string) =>
    new Promise<{ status: number; out: string }>((done) => {
      // As the script does it, without the script: tests ask often.
      const path = { LC_ALL: 'C', PATH: '/usr/sbin:/usr/bin:/sbin:/bin' };
      const env = { ...process.env, ...path, SLURM_CONF: join(directory, 'etc/slurm.conf') };
      const init = readFileSync(join(directory, 'run', `${host}.init`), 'utf8').trim();
      const args = ['-t', init, '-m', '-u', '-p', '--', 'sh', '-c', command];
      execFile('nsenter', args, { timeout: limit(120_000), env }, (error, stdout, stderr) =>
        done({ status: error ? Number(error.code ?? -1) : 0, out: `${stdout}${stderr}`.trim() }),
      );
    });
  /** What it says there. */
  const shell = async (host: string, command: string) => (await on(host, command)).out;
  return {
    ...{ directory, port, hostKey, identityFile, restartCommand, on, shell },
    control: (verb: 'stop' | 'start' | 'restart', daemon: string) =>
      void execFileSync(script, [verb, directory, daemon], { timeout: limit(60_000), stdio: 'ignore' }),
    /** A file next to slurm.conf. */
    file: (name: string) => readFileSync(join(directory, 'etc', name), 'utf8'),
    pid: (daemon: string) => readFileSync(join(directory, 'run', `${daemon}.pid`), 'utf8').trim(),
    /** Submits a job that goes on, and waits until all of it runs. */
    async runJob(options: string, user = 'ada') {
      const submit = `cd; sbatch --parsable ${options} --wrap "sleep 900"`;
      const isRunning = '[ "$(squeue -h -j $id -o %T | sort -u)" = RUNNING ]';
      const command = `id=$(runuser -u ${user} -- sh -c '${submit}') && until ${isRunning}; do sleep 0.1; done; echo $id`;
      const { status, out } = await on('head', command);
      assert.match(out, /^\d+$/, `${options}: ${status} ${out}`);
      // Slurm says RUNNING before slurmd has started it: until then there is no process for a test to see end.
      const node = await shell('head', `squeue -h -j ${out} -o %B | head -n 1`);
      const isStarted = `grep -qsz '^SLURM_JOB_ID=${out}$' /proc/[0-9]*/environ`;
      if (node) await shell(node, `for i in $(seq 100); do ! ${isStarted} || break; sleep 0.1; done`);
      return out;
    },
    stateOf: async (job: string) => (await shell('head', `squeue -h -j ${job} -o %T 2>/dev/null`)) || 'gone',
    settings: (changes: Partial<SlurmSettings> = {}): SlurmSettings => ({
      login: [{ name: 'login1', host: '127.0.0.1', port, hostKey }],
      controller: { host: '127.0.0.1', ...manage },
      compute: { host: '0x7f0000{name}', ...manage },
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
