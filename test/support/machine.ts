/**
 * Nearly a machine of its own: mounts, processes and network that nothing outside of it sees, on this machine's programs.
 * systemd cannot run in it; `systemctl` does what the unit's lines for it say, and nothing more.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from './app.ts';
import { heard } from './heard.ts';
import { limit } from './limit.ts';

const needed = [
  '/usr/sbin/ip',
  '/usr/sbin/useradd',
  '/usr/sbin/runuser',
  '/usr/bin/setpriv',
  '/usr/bin/curl',
];
const missing = needed.filter((path) => !existsSync(path));

/** Why none can be made here; false when it can. */
export const noMachine: string | false =
  process.getuid?.() !== 0 ||
  spawnSync('unshare', ['--mount', '--pid', '--net', '--fork', 'true']).status !== 0
    ? 'needs root and namespaces'
    : missing.length > 0 && `not installed: ${missing.join(', ')}`;

const systemctl = `#!/bin/bash
unit=/etc/systemd/system/andromeda.service
user=$(sed -n 's/^User=//p' $unit); exec=$(sed -n 's/^ExecStart=//p' $unit)
start() {
  for name in StateDirectory=/var/lib CacheDirectory=/var/cache; do
    install -d -o "$user" -g "$user" -m "$(sed -n "s/^\${name%=*}Mode=//p" $unit)" "\${name#*=}/andromeda"
  done
  cd /var/lib/andromeda
  right=+$(sed -n 's/^AmbientCapabilities=CAP_//p' $unit | tr A-Z a-z)
  CACHE_DIRECTORY=/var/cache/andromeda setsid setpriv --reuid "$user" --regid "$user" --clear-groups --no-new-privs \\
    --inh-caps $right --ambient-caps $right $exec < /dev/null >> /run/journal 2>&1 &
  echo $! > /run/andromeda.pid
}
stop() {
  [ -e /run/andromeda.pid ] || return 0
  pid=$(cat /run/andromeda.pid)
  kill -s "$1" $pid 2> /dev/null
  for i in $(seq 100); do [ -e /proc/$pid/exe ] || break; sleep 0.05; done
  rm /run/andromeda.pid
}
show() {
  case "$1" in
    ExecStart) echo "{ path=\${exec%% *} ; argv[]=$exec ; }" ;;
    ActiveState) [ -e /run/andromeda.pid ] && echo active || echo inactive ;;
    MainPID) cat /run/andromeda.pid 2> /dev/null || echo 0 ;;
  esac
}
case "$*" in
  'show --property '*) show "$3" ;;
  'reload andromeda'*) setpriv --reuid "$user" --regid "$user" --clear-groups $(sed -n 's/^ExecReload=//p' $unit) ;;
  'enable --now andromeda' | 'start andromeda') start ;;
  'stop andromeda') stop TERM ;;
  'restart andromeda'*) stop "$(sed -n 's/^RestartKillSignal=//p' $unit)"; start ;;
  'reset-failed andromeda'*) ;;
  *) echo "systemctl $*: not known here" >&2; exit 1 ;;
esac`;

const setUp = `
own=$1
mount -t proc proc /proc
ip link set lo up
cp -a /etc "$own/etc"; mount --bind "$own/etc" /etc
for place in /run /var/lib /var/cache /var/backups /usr/local/bin; do
  [ -d $place ] && mount -t tmpfs -o mode=755 tmpfs $place
done
# The machine's own directory may lie in the memory that everyone shares, which it hides.
mount --bind "$own" /mnt
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mkdir -p "$own"; mount --move /mnt "$own"
cp -a "$own/bin/." /usr/local/bin/
: > "$own/ready"
exec cat`;

export interface Said {
  status: number | null;
  stdout: string;
  stderr: string;
}

export interface Machine extends AsyncDisposable {
  /** Starts a line of shell as root, in a directory that is the machine's own. */
  start(line: string): ChildProcess;
  run(line: string, input?: string): Promise<Said>;
  /** The same directory from outside. */
  home: string;
}

export async function startMachine(own: string): Promise<Machine> {
  const home = join(own, 'home');
  for (const path of [home, join(own, 'bin')]) mkdirSync(path, { recursive: true, mode: 0o755 });
  writeFileSync(join(own, 'bin/systemctl'), systemctl, { mode: 0o755 });
  const flags = [
    '--mount',
    '--propagation',
    'private',
    '--pid',
    '--net',
    '--uts',
    '--ipc',
    '--fork',
    '--kill-child',
  ];
  const holder = spawn('unshare', [...flags, '--', 'bash', '-ec', setUp, 'bash', own], {
    stdio: ['pipe', 'ignore', 'pipe'],
    timeout: limit(300_000),
    killSignal: 'SIGKILL',
  });
  const ended = new Promise((done) => holder.once('close', done));
  const complaint = heard(holder.stderr);
  try {
    await eventually(
      async () => complaint() + (holder.exitCode ?? ''),
      () => existsSync(join(own, 'ready')),
    );
  } catch (error) {
    holder.kill('SIGKILL');
    throw error;
  }
  const inside = readFileSync(`/proc/${holder.pid}/task/${holder.pid}/children`, 'utf8').trim();
  const start = (line: string) => {
    const env = { HOME: home, PATH: `/usr/local/bin:${process.env['PATH']}`, LANG: 'C.UTF-8' };
    return spawn(
      'nsenter',
      ['-t', inside, '-m', '-p', '-n', '-u', '-i', `--wd=${home}`, '--', 'bash', '-c', line],
      {
        env,
        timeout: limit(60_000),
        killSignal: 'SIGKILL',
      },
    );
  };
  return {
    home,
    start,
    run(line, input = '') {
      const child = start(line);
      const [out, err] = [heard(child.stdout), heard(child.stderr)];
      child.stdin?.on('error', () => {}); // it need not read it
      child.stdin?.end(input);
      // Not `close`: what it leaves running may hold its output.
      return new Promise((done) =>
        child.once('exit', (status) => setTimeout(() => done({ status, stdout: out(), stderr: err() }), 50)),
      );
    },
    async [Symbol.asyncDispose]() {
      holder.stdin.end();
      await ended;
    },
  };
}
