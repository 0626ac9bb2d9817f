/** A host without Slurm for the scripts: its own accounts, homes and notes in a namespace; started anew for each script. */
import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ManifestAccount } from '../../src/domain/access/manifest.ts';
import type { ManifestGroup } from '../../src/domain/organizations/membership.ts';
import type { SlurmSettings } from '../../src/domain/slurm/settings.ts';
import { accountRows, groupRows, hostRows } from '../../src/sync/slurm/desired.ts';
import { type Facts, readFacts } from '../../src/sync/slurm/facts.ts';
import type { Host, Role } from '../../src/sync/slurm/hosts.ts';
import { type Row, scriptOf } from '../../src/sync/slurm/script.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { limit } from '../support/limit.ts';
import { clusterId } from './people.ts';

const slurm: SlurmSettings = {
  login: [{ name: 'login1', host: '127.0.0.1', hostKey: 'ssh-ed25519 AAAA' }],
  controller: { host: '127.0.0.1' },
};

/** `prepare`: a shell command in the namespace before each script. `settings`: of the cluster. `start`: a shell for the script. */
export function oneHost(
  roles: readonly Role[],
  settings: Partial<SlurmSettings> = {},
  prepare = 'true',
  accounts?: Host['accounts'],
  start = 'exec sh -s',
) {
  const own = temporaryDirectory();
  const directory = own.path;
  const notes = join(directory, 'var/andromeda-slurm', clusterId);
  cpSync('/etc', join(directory, 'etc'), {
    recursive: true,
    verbatimSymlinks: true,
    preserveTimestamps: true,
  });
  for (const name of ['home', 'var', 'run']) mkdirSync(join(directory, name));
  const mounts = ['etc:/etc', 'home:/home', 'var:/var/lib', 'run:/run'].map((one) => {
    const [name = '', at] = one.split(':');
    return `mount --bind ${join(directory, name)} ${at}`;
  });
  // Slurm's programs would search for a controller in vain.
  const noSlurm =
    'for one in scontrol sacctmgr squeue; do ! at=$(command -v $one) || mount --bind /bin/false $at; done';
  const inside = [...mounts, noSlurm, prepare, start].join(' && ');
  let runs = 0;
  let version = 0;

  /** Runs it in the host's namespaces; rejects where it does not end with 0. */
  function run(script: string): Promise<string> {
    // As on a host, the number of a process that was killed is not soon that of another.
    runs += 1;
    const numbers = `echo ${((runs % 30) + 1) * 1_000} > /proc/sys/kernel/ns_last_pid`;
    const command = `${numbers} && ${inside}`;
    const args = ['-m', '-u', '-p', '-f', '--kill-child', '--mount-proc', 'sh', '-c', command];
    return new Promise((resolve, reject) => {
      const child = spawn('unshare', args, {
        timeout: limit(60_000),
        env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' },
      });
      let out = '';
      let err = '';
      child.stdout.setEncoding('utf8').on('data', (part: string) => {
        out += part;
      });
      child.stderr.setEncoding('utf8').on('data', (part: string) => {
        err += part;
      });
      child.stdin.on('error', () => {});
      child.stdin.end(script);
      child.once('close', (status) =>
        status === 0 ? resolve(out) : reject(new Error(`it ended with ${status}: ${out}${err}`)),
      );
    });
  }

  const host: Host = { address: 'local', nodes: [], roles: new Set(roles), ...(accounts && { accounts }) };
  const scope = { clusterId, organization: 'physics', settings: { ...slurm, ...settings } };
  const script = (action: string, rows: readonly Row[]) =>
    scriptOf([...hostRows(scope, host, action), ...rows]);

  return {
    ...{ directory, run },
    /** The script that gives the host these people, for `run`. */
    applying(
      accounts: readonly ManifestAccount[],
      rows: readonly Row[] = [],
      groups: readonly ManifestGroup[] = [],
    ) {
      version += 1;
      return script('apply', [
        ['version', version, version, 0],
        ...accountRows(accounts, host),
        ...groupRows({ accounts, groups }),
        ...rows,
      ]);
    },
    async apply(...wanted: Parameters<typeof this.applying>): Promise<Facts> {
      return readFacts(await run(this.applying(...wanted)), new Map());
    },
    observe: async () => readFacts(await run(script('observe', [])), new Map()),
    releasing: (rows: readonly Row[] = []) => script('release', [['version', 0, 0, 0], ...rows]),
    async release(): Promise<Facts> {
      return readFacts(await run(this.releasing()), new Map());
    },
    shell: async (command: string) => (await run(command)).trim(),
    file: (path: string) => readFileSync(join(directory, path), 'utf8'),
    notes,
    [Symbol.dispose]: () => own[Symbol.dispose](),
  };
}
