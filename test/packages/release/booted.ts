/** Runs a script under a real systemd: a container of this machine's own programs, whose changes are in memory. */
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { heard } from '../../support/heard.ts';
import { limit } from '../../support/limit.ts';

const unit = `[Unit]
After=basic.target
[Service]
Type=oneshot
ExecStart=/bin/bash /campaign/run.sh
StandardOutput=file:/campaign/output
StandardError=file:/campaign/errors
TimeoutStartSec=280
`;

/** What the scripts of both packages are asked for. */
const helpers = `
trap 'kill -s SIGRTMIN+4 1' EXIT
show() { systemctl show -P "$1" andromeda; }
ready() { curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:8080/readyz; }
until_() { for i in $(seq 300); do if eval "$1"; then return 0; fi; sleep 0.2; done; return 1; }
gateway() { pgrep -u andromeda-gateway -f 'andromeda gateway' | sort | tr '\\n' ' '; }
`;

/** `packages`: a directory, which the script has as /packages. Resolves to a reader of what it wrote into /campaign. */
export async function runBooted(directory: string, packages: string, script: string) {
  const campaign = join(directory, 'campaign');
  mkdirSync(campaign);
  writeFileSync(join(campaign, 'run.sh'), `${helpers}${script}`);
  writeFileSync(join(campaign, 'campaign.service'), unit);
  // systemd-nspawn takes no / for it, but another place where the same is.
  const place = join(directory, 'machine');
  mkdirSync(place);
  const machine = spawn(
    'unshare',
    [
      ...['--mount', 'sh', '-ec', 'mount --bind / "$0"; exec systemd-nspawn "$@"', place],
      ...['--register=no', '--keep-unit', '--private-network', '--quiet', `--directory=${place}`],
      '--volatile=overlay',
      `--bind=${campaign}:/campaign`,
      `--bind-ro=${packages}:/packages`,
      `--bind-ro=${campaign}/campaign.service:/etc/systemd/system/campaign.service`,
      ...['--boot', 'systemd.firstboot=no', 'systemd.unit=campaign.service'],
      'systemd.mask=systemd-networkd-wait-online.service',
    ],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  );
  const shown = heard(machine.stdout, machine.stderr);
  const ending = setTimeout(() => machine.kill('SIGKILL'), limit(280_000));
  await new Promise((done) => machine.once('close', done));
  clearTimeout(ending);
  const read = (name: string) =>
    existsSync(join(campaign, name)) ? readFileSync(join(campaign, name), 'utf8') : `no ${name}`;
  return { read, all: () => `${read('output')}\n${read('errors')}\n${shown().slice(-3000)}` };
}
