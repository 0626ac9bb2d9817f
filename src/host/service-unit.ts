/** The systemd unit of the service, and the configuration it begins with. */

export interface UnitOptions {
  /** The program, as a path that the service can reach. */
  program: string;
  /** The configuration file. */
  config: string;
  /** The account it runs as. */
  user: string;
  /** A data directory elsewhere than where systemd makes one. */
  dataDir: string | undefined;
}

/** Where systemd makes the data directory (StateDirectory). */
export const stateDirectory = '/var/lib/andromeda';

/** The unit, for systemd 245 and newer. */
export function unitText({ program, config, user, dataDir }: UnitOptions): string {
  return `# Made by \`andromeda service install\`. Yours to change by a drop-in: systemctl edit andromeda
[Unit]
Description=Andromeda, access to GPU clusters
After=network-online.target
Wants=network-online.target

[Service]
Type=exec
ExecStart=${quoted(program)} serve --config ${quoted(config)}
User=${user}
Restart=on-failure
RestartSec=2
# Its own processes end when it tells them to.
KillMode=mixed
TimeoutStopSec=30
LimitNOFILE=65536
UMask=0077

# The data directory, and where the program unpacks its native code.
StateDirectory=andromeda
StateDirectoryMode=0711
CacheDirectory=andromeda
CacheDirectoryMode=0700
WorkingDirectory=${stateDirectory}
${dataDir === undefined ? '' : `ReadWritePaths=${quoted(dataDir)}\n`}
# Ports below 1024, and no other right of root.
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
SystemCallErrorNumber=EPERM
# Not MemoryDenyWriteExecute: JavaScript is compiled while it runs.

[Install]
WantedBy=multi-user.target
`;
}

/** What the configuration file says at first: everything on loopback. */
export const firstConfig = `# Andromeda's configuration. A key that is left out has its default.
dataDir: ${stateDirectory}

# Where the two APIs listen, and what people call them by. Off loopback they need
# \`tls: { cert: …, key: … }\`, or \`behindProxy: true\` where a proxy in front does TLS.
platform: { listen: "127.0.0.1:8080", url: "http://127.0.0.1:8080" }
business: { listen: "127.0.0.1:8081", url: "http://127.0.0.1:8081" }

# The SSH address: where it listens, and the name and port that people log in to.
gateway: { listen: "127.0.0.1:2222", hostname: "127.0.0.1", port: 2222 }

identity:
  # issuer: "https://login.example.org"      # left out: the built-in sign-in, below
  embedded: { listen: "127.0.0.1:8082", url: "http://127.0.0.1:8082" }
`;

/** A word as systemd.syntax(7) and systemd.unit(5) read it. */
function quoted(path: string): string {
  const plain = path.replaceAll('%', '%%').replaceAll('$', '$$$$');
  return /^[\w./%$@+-]+$/.test(plain) ? plain : `"${plain.replace(/[\\"]/g, '\\$&')}"`;
}
