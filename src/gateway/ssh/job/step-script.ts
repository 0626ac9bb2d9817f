/** What runs as a step of a job: OpenSSH's server, for the one connection that comes by its standard input. */

/** Inside the job: the host key and the key to let in come by standard input, up to a line with a dot; then SSH does. */
export const stepScript = `
say() { printf 'andromeda-job %s\\n' "$*" >&2; }
umask 077
new=$(mktemp -d /tmp/andromeda-job.XXXXXX) || { say "refused There is no room in /tmp on $(hostname)."; exit 1; }
# Slurm ends what is left of a step where it follows processes by cgroups, and only there.
end() {
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
