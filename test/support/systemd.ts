/** A real systemd, in a container of this machine's own programs whose /etc and /var are empty. */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { missingForBundle } from '../../scripts/build/bundle.ts';
import { temporaryDirectory } from './directory.ts';
import { buildExecutable, placeExecutable } from './executable.ts';
import { heard } from './heard.ts';
import { limit } from './limit.ts';

const root = join(import.meta.dirname, '../..');
const nspawn = '/usr/bin/systemd-nspawn';
const container = [
  '--register=no',
  '--keep-unit',
  '--private-network',
  '--quiet',
  '--directory=/',
  '--volatile=yes',
];
const missing = missingForBundle(root);

/** Why it cannot be had here; false when it can. */
export function noSystemd(): string | false {
  if (missing.length > 0) return `the build needs ${missing.join(', ')}`;
  if (!existsSync(nspawn)) return `${nspawn} is not installed`;
  if (!existsSync('/usr/bin/python3')) return 'python3 is not installed';
  const { status } = spawnSync(nspawn, [...container, '/bin/true'], {
    timeout: limit(30_000),
    stdio: 'ignore',
  });
  return status !== 0 && 'systemd-nspawn does not work here';
}

/** Runs once systemd is up, and switches the machine off. */
const unit = `[Unit]
After=basic.target
[Service]
Type=oneshot
ExecStart=/bin/bash /campaign/run.sh
StandardOutput=file:/campaign/output
StandardError=file:/campaign/errors
TimeoutStartSec=infinity
`;

/** Begins every script, and has the machine switched off at its end. */
const begin = `
config=/etc/andromeda/andromeda.yaml
show() { systemctl show -P "$1" andromeda; }
ready() { curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:8080/readyz; }
until_() { for i in $(seq 1500); do if eval "$1"; then return 0; fi; sleep 0.2; done; return 1; }
gateway() { pgrep -u \${1:-andromeda-gateway} -f ' gateway [0-9]' | sort | tr '\\n' ' '; }
trap 'journalctl -o cat --no-pager > /campaign/journal; kill -s SIGRTMIN+4 1' EXIT

mkdir -p /opt; cp /program/andromeda /opt/andromeda
`;

export interface Campaign {
  /** What the script wrote. */
  lines: string[];
  /** A file that it wrote in /campaign. */
  read(name: string): string;
  /** All that could say why it went otherwise. */
  context: string;
}

/**
 * Boots it, with the program as /opt/andromeda and this checkout as /checkout, and runs a script of bash as root. `withNext`: with the version
 * after this one as /program/next.
 */
export async function runUnderSystemd(script: string, { withNext = false } = {}): Promise<Campaign> {
  using directory = temporaryDirectory();
  const program = join(directory.path, 'andromeda');
  await placeExecutable(program);
  // One for all files of a run.
  const next = join(process.env['ANDROMEDA_TEST_SHARED'] ?? directory.path, 'next');
  if (withNext && !existsSync(next))
    await buildExecutable(next, ['--changes', join(import.meta.dirname, 'next-version.ts')]);
  const campaign = join(directory.path, 'campaign');
  mkdirSync(campaign);
  writeFileSync(join(campaign, 'run.sh'), begin + script);
  writeFileSync(join(campaign, 'campaign.service'), unit);
  const binds = [
    `--bind=${campaign}:/campaign`,
    `--bind-ro=${root}:/checkout`,
    `--bind-ro=${program}:/program/andromeda`,
    ...(withNext ? [`--bind-ro=${next}:/program/next`] : []),
    `--bind-ro=${campaign}/campaign.service:/etc/systemd/system/campaign.service`,
  ];
  const mask = 'systemd.mask=systemd-networkd-wait-online.service';
  const boot = ['--boot', 'systemd.firstboot=no', 'systemd.unit=campaign.service', mask];
  // One after the other: two containers would share control groups.
  const alone = [nspawn, 'setpriv', '--pdeathsig', 'KILL', nspawn];
  const machine = spawn('flock', [...alone, ...container, ...binds, ...boot], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const shown = heard(machine.stdout, machine.stderr);
  await new Promise((done) => machine.once('close', done));
  const files = new Map(
    readdirSync(campaign, { withFileTypes: true }).flatMap((entry) =>
      entry.isFile() ? [[entry.name, readFileSync(join(campaign, entry.name), 'utf8')] as const] : [],
    ),
  );
  const read = (name: string) => files.get(name) ?? `no ${name}`;
  return {
    lines: read('output').trimEnd().split('\n'),
    read,
    context: `${read('output')}\n${read('errors')}\n${read('journal').slice(-60_000)}\n${shown().slice(-2000)}`,
  };
}
