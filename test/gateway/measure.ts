/**
 * The gateway against OpenSSH's own jump host, in the same run: `node test/gateway/measure.ts [rounds] [MiB]`.
 * No test: it prints medians and ratios. Both lead to the same sshd; the jump is that sshd once more.
 */
import { execFile, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { promisify } from 'node:util';
import { type Lab, openLab } from './lab.ts';

const rounds = Number(process.argv[2] ?? 5);
const megabytes = Number(process.argv[3] ?? 512);
const paths = { direct: ['direct'], jump: ['-J', 'jump', 'inner'], gateway: ['gateway'] };
type Path = keyof typeof paths;

export interface Measured {
  what: string;
  unit: string;
  median: Record<Path, number>;
  /** Gateway to jump; above 1 the gateway is better. */
  ratio: number;
}

/** Runs every measurement `rounds` times, the paths by turns. */
export async function measure(lab: Lab, count: number, size: number): Promise<Measured[]> {
  await promisify(execFile)('sh', ['-c', `head -c ${size}M /dev/zero > ${lab.dir}/big`]);
  const gcm = ['-o', 'Ciphers=aes128-gcm@openssh.com'];
  const up = 'cat > /dev/null';
  const down = `head -c ${size}M /dev/zero`;
  const rate = (ms: number) => (size * 1024 * 1024) / 1e6 / (ms / 1000);
  const tasks = [
    { what: 'up, aes128-gcm', unit: 'MB/s', args: gcm, command: up, input: `${lab.dir}/big`, value: rate },
    { what: 'down, aes128-gcm', unit: 'MB/s', args: gcm, command: down, input: '/dev/null', value: rate },
    { what: 'up, default', unit: 'MB/s', args: [], command: up, input: `${lab.dir}/big`, value: rate },
    { what: 'down, default', unit: 'MB/s', args: [], command: down, input: '/dev/null', value: rate },
    { what: 'connect', unit: 'ms', args: [], command: 'true', input: '/dev/null', value: (ms: number) => ms },
  ];
  const results: Measured[] = [];
  for (const { what, unit, args, command, input, value } of tasks) {
    const seen: Record<Path, number[]> = { direct: [], jump: [], gateway: [] };
    for (let round = 0; round < (unit === 'ms' ? count * 3 : count); round += 1)
      for (const path of Object.keys(paths) as Path[]) {
        const ms = await timed(lab, [...args, ...paths[path], command], input);
        seen[path].push(value(ms));
      }
    const middle = { direct: median(seen.direct), jump: median(seen.jump), gateway: median(seen.gateway) };
    const ratio = unit === 'ms' ? middle.jump / middle.gateway : middle.gateway / middle.jump;
    results.push({ what, unit, median: middle, ratio });
  }
  return results;
}

function timed(lab: Lab, args: string[], input: string): Promise<number> {
  const stdin = openSync(input, 'r');
  const start = performance.now();
  const child = spawn('ssh', [...lab.options, ...args], { stdio: [stdin, 'ignore', 'inherit'] });
  closeSync(stdin);
  return new Promise((resolve, reject) => {
    child.on('close', (status) =>
      status === 0 ? resolve(performance.now() - start) : reject(new Error(`ssh ended with ${status}`)),
    );
  });
}

const median = (values: number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;

if (import.meta.main) {
  const lab = await openLab();
  for (const { what, unit, median: m, ratio } of await measure(lab, rounds, megabytes)) {
    const cells = Object.entries(m).map(([path, value]) => `${path} ${value.toFixed(0)}`);
    console.log(`${what.padEnd(18)} ${cells.join('  ')} ${unit}  gateway/jump ${ratio.toFixed(2)}`);
  }
  const { utime, stime } = { utime: process.cpuUsage().user, stime: process.cpuUsage().system };
  console.log(`gateway process: user ${(utime / 1e6).toFixed(1)} s, system ${(stime / 1e6).toFixed(1)} s`);
  await lab.close();
}
