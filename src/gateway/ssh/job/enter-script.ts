/**
 * The scripts that enter a job, run on a login node as the person: the first asks Slurm for the running jobs and starts a step
 * in one, the second makes that step an OpenSSH server for this one connection. Both are sh, and report by lines on standard
 * error that begin with `andromeda-job`. Start-up files of the account can write there as well: so the lines serve only the
 * person's own screen, and a record takes only what the cluster's controller reports (`withConfirmedJob`).
 *
 *   refused <text>                          there is no way in, and why; ahead of it `job <id>|<nodes>|<name>` for each running job
 *   in <id>|<node>                          the step starts
 *   left <seconds>                          of the job's time, when little is left
 *   ended <state>                           the step has ended, in this state of the job
 */
import type { JobTarget } from '../../../domain/access/ssh-session.ts';
import { commandLine } from '../relay/exec-line.ts';

/** Timeouts of Slurm's start of a step, and of retries after a refusal: nodes first register with a slurmctld that came back. */
const stepSeconds = 15;
const triedSeconds = 10;
/** Seconds before a job's end at which the person gets a notice. */
const noticesBefore = '600 120';

const enter = `
say() { printf 'andromeda-job %s\\n' "$*" >&2; }
refuse() { say "refused $*"; exit 1; }
# What was printed before, on standard output, without a line end: SSH's first line begins a line.
echo
export LC_ALL=C
# The person's own settings for Slurm's commands change what is printed here, and the step.
for name in $(env | sed -n 's/^\\(S\\(LURM\\|QUEUE\\|RUN\\|CONTROL\\)_[A-Za-z0-9_]*\\)=.*/\\1/p'); do
  [ "$name" = SLURM_CONF ] || unset "$name"
done
for program in squeue scontrol srun; do
  command -v $program > /dev/null 2>&1 || refuse "Slurm's $program is not installed on the login node."
done
began=$(date +%s)
is_early() { [ $(($(date +%s) - began)) -lt ${triedSeconds} ] && sleep 1; }
ask() { SLURM_TIME_FORMAT=%s squeue -h "$@"; }
until jobs=$(ask -u "$(id -un)" -t RUNNING -S -S -o '%i|%A|%e|%N|%j' 2>&1); do
  is_early || refuse "Slurm does not say which jobs run: $(printf '%s' "$jobs" | head -n 1)"
done
each() { printf '%s\\n' "$jobs" | while IFS='|' read -r id number end nodes name; do [ -n "$id" ] && "$@"; done; }
is_wanted() { case $id in "$wanted" | "$wanted"[_+]*) true ;; *) [ -z "$wanted" ] ;; esac; }
choose() { is_wanted && printf '%s|%s|%s|%s\\n' "$id" "$number" "$end" "$nodes"; }
list() { say "job $id|$nodes|$name"; }
chosen=$(each choose | head -n 1)
if [ -z "$chosen" ]; then
  each list 2>&1 | head -n 10 >&2
  if [ -n "$wanted" ]; then refuse "You have no job $wanted that runs now."; else refuse "You have no job that runs now."; fi
fi
IFS='|' read -r id number end nodes <<END
$chosen
END
hosts=$(scontrol show hostnames "$nodes")
node=\${node:-$(printf '%s\\n' "$hosts" | head -n 1)}
printf '%s\\n' "$hosts" | grep -qxF -- "$node" || refuse "Job $id runs on $nodes, not on $node."
# An array's last task and a heterogeneous job's first component have the ID of the whole, for which Slurm reports on every part.
only_own() { awk -v own="JobId=$number" '/^JobId=/ { is_own = $1 == own } is_own'; }
# By any way of asking for GPUs, what the job holds on this node: of itself a step gets what was asked for the whole job, or a task.
until job=$(scontrol -d -o show job "$number" 2>&1); do
  is_early || refuse "Slurm does not say what job $id holds: $(printf '%s' "$job" | head -n 1)"
done
gres=$(printf '%s\\n' "$job" | only_own | tr ' ' '\\n' | while IFS='=' read -r key value; do
  case $key in
    Nodes) scontrol show hostnames "$value" | grep -qxF -- "$node" && here=yes || here= ;;
    GRES) [ -z "$here" ] || printf '%s,' "$value" ;;
  esac
done)
case ,$gres in
  *,mps:* | *,shard:*) refuse "Job $id holds parts of GPUs (MPS or shards), which its own steps alone can use." ;;
esac
gpus=$(printf '%s' "$gres" | tr ',' '\\n' | sed -n 's/^gpu:\\(.*:\\)\\{0,1\\}\\([0-9]*\\)(.*/\\2/p' | awk '{ sum += $1 } END { print sum }')
left() {
  end=$(ask -j "$number" -o '%A|%e' 2> /dev/null | sed -n "s/^$number|//p")
  [ "$end" -gt 0 ] 2> /dev/null && left=$((end - $(date +%s)))
}
watch() {
  # By then there is a session to say it in.
  sleep 5 2> /dev/null
  for before in ${noticesBefore}; do
    # The limit may be moved: Slurm is asked again before it is said.
    until [ $((end - $(date +%s))) -le "$before" ] && left && [ "$left" -le "$before" ]; do
      sleep 30 2> /dev/null
      kill -0 $$ 2> /dev/null || exit
    done
    [ "$left" -gt $((before / 6)) ] && say "left $left"
  done
}
say "in $id|$node"
case $end in
  # Its time is not limited.
  *[!0-9]*) watcher= ;;
  *) watch < /dev/null > /dev/null & watcher=$! ;;
esac
trap '[ -z "$watcher" ] || kill $watcher' EXIT
trap 'exit 1' HUP TERM
case $id in
  *_*) export SLURM_ARRAY_JOB_ID="\${id%_*}" SLURM_ARRAY_TASK_ID="\${id#*_}" ;;
esac
case $id in
  *+*) job="--jobid=\${id%+*} --het-group=\${id#*+}" ;;
  *) job="--jobid=$number" ;;
esac
exec 3>&1
# What Slurm prints is read when it is over: a step that was not made is tried again, and nothing has read the input then.
while words=$(srun -Q $job --overlap --nodelist="$node" -N1 -n1 \${gpus:+--gpus="$gpus"} -u -I${stepSeconds} --cpu-bind=none --export=ALL sh -c "$step" 2>&1 >&3 3>&-)
  status=$?
  case $words in *'Unable to create step'*) ;; *) false ;; esac && is_early
do :; done
printf '%s\\n' "$words" >&2
# Where the person has gone, what is said is read by no one; the traps are to run all the same.
trap '' PIPE
for _ in 1 2 3 4 5 6 7 8 9 10; do
  state=$(scontrol -o show job "$number" 2> /dev/null | only_own | sed -n 's/.* JobState=\\([A-Z_]*\\).*/\\1/p')
  [ "$state" = COMPLETING ] || break
  sleep 0.5
done
say "ended \${state:-UNKNOWN} $status"
`;

/** The line for the login node's shell. The fields of a target have no characters that a shell interprets. */
export function enterJobLine({ id = '', node = '' }: JobTarget): string {
  const quoted = `'${stepScript.replaceAll("'", `'\\''`)}'`;
  return commandLine('/bin/sh', `wanted='${id}' node='${node}' step=${quoted}\n${enter}`);
}

/** The first input of the command: the key to let in, then the server's own. */
export function enterJobInput(authorizedKey: string, hostKey: string): string {
  return `${authorizedKey}\n${hostKey.trimEnd()}\n.\n`;
}

/** Runs inside the job, by sh: reads the host key and the key to let in from standard input, up to a line with a dot; then SSH follows. */
export const stepScript = `
say() { printf 'andromeda-job %s\\n' "$*" >&2; }
umask 077
new=$(mktemp -d /tmp/andromeda-job.XXXXXX) || { say "refused There is no room in /tmp on $(hostname)."; exit 1; }
# Slurm ends what is left of a step where it follows processes by cgroups, and only there.
end() {
  # A job's end can signal its steps more than once, and these programs too.
  trap '' HUP TERM
  rm -rf "$d"
  grep -lsF "ANDROMEDA_JOB_LOGIN=$d" /proc/[0-9]*/environ | cut -d/ -f3 | xargs -r kill -KILL 2> /dev/null
}
# Of steps of this account that were killed, and could not do it.
for d in /tmp/andromeda-job.*; do
  [ -O "$d" ] && IFS= read -r owner < "$d/pid" && ! kill -0 "$owner" && end
done 2> /dev/null
d=$new
trap end EXIT
trap 'exit 1' HUP TERM
printf '%s\\n' $$ > "$d/pid"
IFS= read -r authorized && printf '%s\\n' "$authorized" > "$d/authorized"
while IFS= read -r line && [ "$line" != . ]; do printf '%s\\n' "$line"; done > "$d/key"
for sshd in /usr/sbin/sshd /usr/local/sbin/sshd /usr/lib/ssh/sshd /sbin/sshd; do [ -x "$sshd" ] && break; done
[ -x "$sshd" ] || { say "refused OpenSSH's server is not installed on $(hostname)."; exit 1; }
env=$(env | sed -n 's/^\\([A-Za-z_][A-Za-z0-9_]*=[^"\\\\]*\\)$/"\\1"/p' |
  grep -E '^"(SLURM|CUDA|NVIDIA|ROCR|HIP|GPU|ZE|OMP|TMPDIR)[A-Z0-9_]*=' | tr '\\n' ' ')
cat > "$d/config" <<END
HostKey $d/key
AuthorizedKeysFile $d/authorized
AuthenticationMethods publickey
PidFile none
UsePAM no
UseDNS no
StrictModes no
PrintMotd no
PrintLastLog no
LogLevel ERROR
MaxSessions 512
# Where the login node is gone, nothing else tells it.
ClientAliveInterval 15
ClientAliveCountMax 3
AllowTcpForwarding local
AllowStreamLocalForwarding no
AllowAgentForwarding no
X11Forwarding no
PermitTunnel no
Subsystem sftp internal-sftp
SetEnv "ANDROMEDA_JOB_LOGIN=$d" $env
END
# A trap waits for what runs in the foreground, and not for this.
exec 3<&0
"$sshd" -i -e -f "$d/config" <&3 & server=$!
exec 3<&-
wait $server
`;
