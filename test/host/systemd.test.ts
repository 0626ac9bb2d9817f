/**
 * The unit under a real systemd, in a container of this machine's own programs whose /etc and /var are empty: installed, started,
 * killed, reloaded and stopped, and what SSH sessions outlive. What else befalls a machine is in systemd.full.test.ts.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { alpha } from '../support/app.ts';
import { noSystemd, runUnderSystemd } from '../support/systemd.ts';

const login = `${alpha}.root`;
/**
 * Each step writes one line, \`NAME: RESULT\`, which the test reads. Sessions are from OpenSSH's client to its server. For them the
 * service is one with a database that lets a key in (test/gateway/process/service.ts); the gateway is the program's.
 */
const script = `
/opt/andromeda service install > /campaign/install || exit
systemctl start andromeda; echo "started: $? $(show ActiveState) $(ready)"
first=$(show MainPID)
kill -9 $first; until_ '[ $(show MainPID) != $first ] && [ $(show MainPID) != 0 ] && [ $(show ActiveState) = active ]'
echo "killed: $(ready)"
before=$(show MainPID); systemctl reload andromeda; echo "reloaded: $? $([ $before = $(show MainPID) ] && echo same process)"
/opt/andromeda doctor --config $config > /campaign/doctor; echo "doctor: $?"
systemctl stop andromeda; until_ '[ -z "$(gateway)" ]'; echo "stopped: $? $(show ActiveState)"

lab=/opt/lab; mkdir -p $lab /root /run/sshd; cd $lab
for key in host client node user; do ssh-keygen -q -t ed25519 -N '' -C '' -f $key; done
chown andromeda: host client
id sshd > /dev/null 2>&1 || useradd --system --home-dir /run/sshd --shell /usr/sbin/nologin sshd
usermod -p '*' root
printf '%s\\n' 'Port 2200' 'ListenAddress 127.0.0.1' "HostKey $lab/node" "AuthorizedKeysFile $lab/client.pub" 'StrictModes no' \\
  'UsePAM no' 'PermitRootLogin yes' > sshd_config
/usr/sbin/sshd -f $lab/sshd_config
printf '{"installation":{"users":[{"email":"root@physics.example"}]},"configFile":"%s","keys":{"host":"%s","client":"%s"},"loginName":"%s","userKey":"%s","loginNode":{"host":"127.0.0.1","port":2200,"hostKey":"%s"}}' \\
  $config $lab/host $lab/client ${login} "$(cat user.pub)" "$(cat node.pub)" > order.json
echo "[127.0.0.1]:2222 $(cat host.pub)" > known_hosts
# Starts a session that sends back what is written to descriptor 9.
log_in() {
  exec 9>&-; rm -f in; mkfifo in; : > out
  ssh -F none -o UserKnownHostsFile=$lab/known_hosts -o BatchMode=yes -o IdentitiesOnly=yes -i user -l ${login} -p 2222 127.0.0.1 cat \\
    < in > out 2> err & exec 9> in
}
goes_on() { echo $1 >&9; until_ "grep -qx $1 out" && echo the session goes on; }
listens() { until_ '(: > /dev/tcp/127.0.0.1/2222) 2> /dev/null'; }

units=/run/systemd/system/andromeda.service.d; mkdir -p $units
printf '%s\\n' '[Service]' Type=simple WatchdogSec=0 RestartSec=1 ExecStartPre= ExecStart= \\
  "ExecStart=/checkout/node_modules/node/bin/node /checkout/test/gateway/process/service.ts $lab/order.json" > $units/test.conf
systemctl daemon-reload; systemctl start andromeda; listens; log_in; goes_on one

held=$(gateway); before=$(show MainPID); systemctl restart andromeda
echo "restarted: $([ $before != $(show MainPID) ] && echo another service), $(goes_on four), $([ "$held" = "$(gateway)" ] && echo same gateway)"
before=$(show MainPID); kill -9 $before; until_ '[ $(show MainPID) != $before ] && [ $(show MainPID) != 0 ]'
echo "killed: $(goes_on five), $([ "$held" = "$(gateway)" ] && echo same gateway)"
systemctl stop andromeda-gateway.socket 2> /dev/null; echo "without its socket: $(goes_on six), $([ "$held" = "$(gateway)" ] && echo same gateway)"
kill -STOP $held; systemctl restart andromeda; until_ '[ -n "$(gateway)" ] && [ "$(gateway)" != "$held" ]'
listens; log_in; echo "hung: $(goes_on seven) in another process"
systemctl stop andromeda; until_ '[ -z "$(gateway)" ]'
wait $!; echo "stopped: $? $(grep -q "The gateway is being restarted" err && echo told) $(gateway)$(systemctl list-units --all --no-legend 'andromeda-gateway@*')"
`;

test('under systemd: installed, started, killed, reloaded and stopped; SSH sessions outlive the service, but no stop', {
  skip: noSystemd(),
}, async () => {
  const { lines, context } = await runUnderSystemd(script);
  assert.deepEqual(
    lines,
    [
      'started: 0 active 200',
      'killed: 200',
      'reloaded: 0 same process',
      'doctor: 0',
      'stopped: 0 inactive',
      'the session goes on',
      'restarted: another service, the session goes on, same gateway',
      'killed: the session goes on, same gateway',
      'without its socket: the session goes on, same gateway',
      'hung: the session goes on in another process',
      'stopped: 255 told',
    ],
    context,
  );
});
