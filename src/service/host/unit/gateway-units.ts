/**
 * The units that give the processes of the SSH gateway an account of their own. The service, which cannot change its user,
 * has systemd start them over a socket that only it can open (src/gateway/process).
 */

export const gatewayAccount = 'andromeda-gateway';
const serviceDirectory = '/run/andromeda-gateway';
export const gatewaySocket = 'andromeda-gateway.socket';
export const launcherSocket = '/run/andromeda-gateway.sock';

export function gatewaySocketText(user: string): string {
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
 * What is asked on a connection: to start a process, which gets the directory of the service's socket as descriptor 3, or
 * to end one of this account.
 */
const script = `read -r what which
if [ "$what" != start ]; then kill -s "$what" "$which"; exit; fi
exec 3<${serviceDirectory}
echo $$
exec "$1" gateway "$which" </dev/null >/dev/null`
  .replaceAll('$', '$$$$')
  .replaceAll('\n', '; ')
  .replace('then;', 'then');

/** `program`: as systemd reads it. `sandbox`: what the service's own unit has of it. */
export function gatewayUnitText(program: string, sandbox: string): string {
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
