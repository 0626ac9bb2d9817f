/** The systemd units of the service and of its gateway's processes, and the initial configuration. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { refusal } from '../installation.ts';
import { exitStatus } from '../messages.ts';

interface UnitOptions {
  program: string;
  config: string;
  user: string;
  writable: readonly string[];
  drainMs: number;
}

export const unitDirectory = '/etc/systemd/system';
/** Directories that systemd makes: for data (StateDirectory), and for logs (LogsDirectory). */
export const stateDirectory = '/var/lib/andromeda';
export const logsDirectory = '/var/log/andromeda';

const sandbox = `# Ports below 1024, and no other right of root.
AmbientCapabilities=CAP_NET_BIND_SERVICE
CapabilityBoundingSet=CAP_NET_BIND_SERVICE
NoNewPrivileges=yes

ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
DevicePolicy=closed
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
RemoveIPC=yes
KeyringMode=private
LockPersonality=yes
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
# For the group that reads the copy of the audit trail; without the right, only groups of the account's own.
SystemCallFilter=@chown
SystemCallErrorNumber=EPERM
# Not MemoryDenyWriteExecute: JavaScript is compiled while it runs.
`;

const lifecycle = `# Without a sign of life of event loop and database for so long, systemd kills and restarts it.
WatchdogSec=90
# The service ends its own processes when it stops. Those that hold SSH sessions outlive its crash, and a restart, of which another
# signal tells it.
KillMode=process
RestartKillSignal=SIGUSR2
OOMPolicy=continue
`;

const directories = `LimitNOFILE=65536
# A core would hold keys.
LimitCORE=0
UMask=0077

# The data directory, where the program unpacks its native code, and where a copy of the audit trail may go.
StateDirectory=andromeda
StateDirectoryMode=0711
CacheDirectory=andromeda
CacheDirectoryMode=0700
LogsDirectory=andromeda
# Others get to a file there whose group they are in.
LogsDirectoryMode=0711
# Where the processes of the SSH gateway find the service. It stays through a restart; when the unit has stopped it is removed,
# and then they end as well, also those that a service left behind that had to be killed.
RuntimeDirectory=andromeda
RuntimeDirectoryMode=0700
RuntimeDirectoryPreserve=restart
`;

/** The units by their file names, for systemd 245 and newer: the service's first. */
export function unitFiles(options: UnitOptions): [name: string, text: string][] {
  return [
    ['andromeda.service', unitText(options)],
    [gatewaySocket, gatewaySocketText(options.user)],
    ['andromeda-gateway@.service', gatewayUnitText(quoted(options.program), sandbox)],
  ];
}

export function unitText({ program, config, user, writable, drainMs }: UnitOptions): string {
  return `# Made by \`andromeda service install\`. Yours to change by a drop-in: systemctl edit andromeda
[Unit]
Description=Andromeda, access to GPU clusters
After=network-online.target andromeda-gateway.socket
Wants=network-online.target andromeda-gateway.socket
# What fails again and again is left alone after some minutes, for a person to see to.
StartLimitIntervalSec=300
StartLimitBurst=30

[Service]
Type=notify
# It is systemd-notify that sends, a process beside the main one.
NotifyAccess=all
TimeoutStartSec=600
# For the log only: what keeps the service from starting ends the service itself, with an exit status.
ExecStartPre=-${quoted(program)} check --quiet --config ${quoted(config)}
ExecStart=${quoted(program)} serve --config ${quoted(config)}
# Waits until the service has its settings, or has refused them and goes on as it was.
ExecReload=${quoted(program)} service reload --config ${quoted(config)}
User=${user}
# By way of it systemd starts the processes of the SSH gateway (andromeda-gateway@.service).
Environment=ANDROMEDA_GATEWAY_LAUNCHER=${launcherSocket}
Restart=on-failure
RestartSec=5
# A restart does not mend a configuration that is wrong, or a port that is taken.
RestartPreventExitStatus=${Object.values(exitStatus).join(' ')}
${lifecycle}TimeoutStopSec=${Math.ceil(drainMs / 1000) + 30}
${directories}WorkingDirectory=${stateDirectory}
${writable.map((path) => `ReadWritePaths=${quoted(path)}\n`).join('')}
${sandbox}
[Install]
WantedBy=multi-user.target
`;
}

export const firstConfig = `# Andromeda's configuration. A key that is left out has its default.
dataDir: ${stateDirectory}

# Where the two APIs and the web console listen, and what people call them by. Off loopback they need
# \`tls: { cert: …, key: … }\`, or \`behindProxy: true\` where a proxy in front does TLS.
platform: { listen: "127.0.0.1:8080", url: "http://127.0.0.1:8080" }
business: { listen: "127.0.0.1:8081", url: "http://127.0.0.1:8081" }
console: { listen: "127.0.0.1:8083", url: "http://127.0.0.1:8083" }

# The SSH address: where it listens, and the name and port that people log in to.
gateway: { listen: "127.0.0.1:2222", hostname: "127.0.0.1", port: 2222 }

identity:
  # issuer: "https://login.example.org"      # left out: the built-in sign-in, below
  embedded: { listen: "127.0.0.1:8082", url: "http://127.0.0.1:8082" }
`;

/** Quotes a path for systemd.syntax(7) and systemd.unit(5). */
function quoted(path: string): string {
  const plain = path.replaceAll('%', '%%').replaceAll('$', '$$$$');
  return /^[\w./%$@+-]+$/.test(plain) ? plain : `"${plain.replace(/[\\"]/g, '\\$&')}"`;
}

/**
 * The processes of the SSH gateway have an account of their own. The service, which cannot change its user, has
 * systemd start them over a socket that only it can open (src/gateway/process).
 */
export const gatewayAccount = 'andromeda-gateway';
const serviceDirectory = '/run/andromeda-gateway';
export const gatewaySocket = 'andromeda-gateway.socket';
const launcherSocket = '/run/andromeda-gateway.sock';

function gatewaySocketText(user: string): string {
  return `# Made by \`andromeda service install\`. Yours to change by a drop-in: systemctl edit andromeda-gateway.socket
[Unit]
Description=Where Andromeda has the processes of its SSH gateway started
# Each installation, upgrade and way back starts it again.
StartLimitIntervalSec=0

[Socket]
ListenStream=${launcherSocket}
SocketUser=${user}
SocketMode=0600
Accept=yes
RemoveOnStop=yes
`;
}

/**
 * Handles a request on a connection: starts a process, which gets the directory of the service's socket as descriptor
 * 3, or ends one of this account.
 */
const script = `read -r what which
if [ "$what" != start ]; then kill -s "$what" "$which"; exit; fi
exec 3<${serviceDirectory}
echo $$
exec "$1" gateway "$which" </dev/null >/dev/null`
  .replaceAll('$', '$$$$')
  .replaceAll('\n', '; ')
  .replace('then;', 'then');

/** `program`: quoted for systemd. `sandbox`: the sandbox settings of the service's own unit. */
function gatewayUnitText(program: string, sandbox: string): string {
  return `# Made by \`andromeda service install\`. Yours to change by a drop-in: systemctl edit andromeda-gateway@
[Unit]
Description=A process of Andromeda's SSH gateway
CollectMode=inactive-or-failed

[Service]
ExecStart=/bin/sh -c '${script}' sh ${program}
StandardInput=socket
StandardOutput=socket
StandardError=socket
User=${gatewayAccount}
# It starts its successor, which shares the address, and ends when its sessions have; the service ends all of them.
KillMode=process
ExitType=cgroup
OOMPolicy=continue
LimitNOFILE=65536
# A core would hold keys.
LimitCORE=0
UMask=0077
# The way to the service's socket; the directory above it is closed to this account.
BindReadOnlyPaths=/run/andromeda/gateway:${serviceDirectory}
# Where the program unpacks its native code.
CacheDirectory=andromeda-gateway
CacheDirectoryMode=0700

${sandbox}`;
}

export interface InstalledService {
  program: string;
  config: string;
  user: string;
}

export const unit = 'andromeda.service';
/** Longer than the unit's own limits for a start and a stop. */
const limitMs = 1_800_000;

/** Throws `invalid_state` where systemd has no service that `service install` made. */
export function installedService(): InstalledService {
  const [, program = '', config] =
    /path=(.+?) ; argv\[\]=.+? serve --config (.+?) ;/.exec(show('ExecStart')) ?? [];
  if (config === undefined || !existsSync(program))
    throw refusal('systemd has no service of ours here. `andromeda service install` makes one.');
  const file = show('FragmentPath');
  if (file !== join(unitDirectory, unit))
    throw refusal(
      `${file} is of a package of the system. Upgrade the package, or install the one of before.`,
    );
  return { program, config, user: show('User') };
}

export function isStarted(): boolean {
  return ['active', 'activating', 'reloading'].includes(show('ActiveState'));
}

/** Runs systemctl, which waits for the job to end. Throws `invalid_state` with its output. */
export function systemctl(...args: string[]): string {
  return run('systemctl', args);
}

/** Runs a program of the system. Returns its output. Throws `invalid_state` with its error output. */
export function run(program: string, args: readonly string[]): string {
  const path = `${process.env['PATH'] ?? ''}:/usr/sbin:/sbin:/usr/bin:/bin`;
  const options = { encoding: 'utf8', timeout: limitMs, env: { ...process.env, PATH: path } } as const;
  const { status, stdout, stderr, error } = spawnSync(program, args, options);
  if (status === 0) return stdout.trim();
  const output = stderr
    ?.trim()
    .replaceAll(/\.?\s*\n\s*/g, '; ')
    .replace(/\.$/, '');
  const reason = error?.message ?? (output || `status ${status}`);
  throw refusal(`\`${program} ${args.join(' ')}\` did not work: ${reason}.`);
}

function show(property: string): string {
  return systemctl('show', '--property', property, '--value', unit);
}
