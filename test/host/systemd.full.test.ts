/**
 * The unit under a real systemd, in a container of this machine's own programs whose /etc and /var are empty: installed, started,
 * killed, hung, reloaded, misconfigured, without its port, on a full disk, without its database or with a damaged one, restored from
 * a backup that it made by itself, and stopped.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { noSystemd, runUnderSystemd } from '../support/systemd.ts';

/** Each step writes one line, \`NAME: RESULT\`, which the test reads. */
const script = `
processes() { cat /sys/fs/cgroup/system.slice/andromeda.service/cgroup.procs 2>/dev/null | wc -l; }
said() { journalctl -u andromeda -o cat -p err | grep -c "$1"; }
# There is no PAM here that runuser would do with.
as_service() { HOME=/tmp setpriv --reuid=andromeda --regid=andromeda --init-groups /opt/andromeda "$@" --config $config; }
/opt/andromeda service install > /campaign/install || exit
mkdir -p /run/systemd/system/andromeda.service.d
printf '[Service]\\nWatchdogSec=9\\nTimeoutStartSec=40\\nRestartSec=1\\n' > /run/systemd/system/andromeda.service.d/test.conf
systemctl daemon-reload
# A disk of its own, which is soon full.
mount -t tmpfs -o size=160m,mode=711 tmpfs /var/lib/andromeda; chown andromeda: /var/lib/andromeda

systemctl start andromeda; echo "started: $? $(show ActiveState) $(ready)"
systemctl show -P ExecStartPre andromeda | grep -c 'status=0' | sed 's/^/checked: /'

# What an account can open, also with the right that the units give: the data directory, the configuration, and what /proc has of the service.
opens() {
  for file in $(find /var/lib/andromeda -type f ! -name '*.pub') $config /proc/$(show MainPID)/{environ,mem}; do
    setpriv --reuid=$1 --regid=$1 --init-groups --inh-caps=+net_bind_service --ambient-caps=+net_bind_service \
      sh -c ': < "$1"' sh $file 2> /dev/null && echo $file
  done
}
echo "the service's account opens: $(opens andromeda | grep -oE '(andromeda.db|gateway_client_ed25519|andromeda.yaml|environ|mem)$' | sort | tr '\\n' ' ')"
echo "the gateway's account: $(gateway | wc -w) $(gateway andromeda | wc -w) opens $(opens andromeda-gateway)"

first=$(show MainPID); held=$(gateway)
kill -9 $first; until_ '[ $(show MainPID) != $first ] && [ $(show MainPID) != 0 ] && [ $(show ActiveState) = active ]'
echo "killed: $(show NRestarts) $(ready) $([ "$held" = "$(gateway)" ] && echo same gateway)"

systemctl reset-failed andromeda; before=$(show MainPID)
kill -USR1 $before; sleep 1; echo "SIGUSR1: $(ready) $(journalctl -u andromeda -o cat | grep -c Debugger)"
systemctl reload andromeda
echo "reloaded: $? $(ready) $([ $before = $(show MainPID) ] && echo same process) $([ "$held" = "$(gateway)" ] && echo same gateway)"
# For longer than the watchdog waits.
for i in $(seq 9); do systemctl reload andromeda || echo "reload $i failed"; sleep 1.5; done
echo "and nine times: $(ready) $([ $before = $(show MainPID) ] && echo same process) $(show NRestarts)"
systemctl restart andromeda
echo "started again: $? $(ready) $([ $before = $(show MainPID) ] || echo another process) $([ "$held" = "$(gateway)" ] && echo same gateway)"

systemctl reset-failed andromeda; before=$(show MainPID)
kill -STOP $before; until_ '[ $(show MainPID) != $before ] && [ $(show MainPID) != 0 ] && [ $(show ActiveState) = active ]'
echo "hung: $(ready) $(journalctl -u andromeda -o cat | grep -c 'Watchdog timeout')"

cp $config /tmp/good; echo 'sink: 1' >> $config
systemctl reload andromeda 2>/dev/null; echo "refused: $? $(ready) $(journalctl -u andromeda -o cat | grep -c 'andromeda: .*sink is not a setting')"
systemctl restart andromeda 2>/dev/null; echo "misconfigured: $? $(show ActiveState) $(show ExecMainStatus)"
sleep 4; echo "left alone: $(show ActiveState) $(show NRestarts)"
journalctl -u andromeda -o cat -p err | grep -c 'sink is not a setting' | sed 's/^/in words: /'
cat /tmp/good > $config

python3 -m http.server 8081 --bind 127.0.0.1 > /dev/null 2>&1 & other=$!
until_ '[ $(curl -s -o /dev/null -w "%{http_code}" http://127.0.0.1:8081/) = 200 ]'
systemctl restart andromeda 2>/dev/null; echo "port taken: $? $(show ActiveState) $(show ExecMainStatus)"
kill $other; wait $other 2>/dev/null

install -d -m 0700 -o andromeda -g andromeda /var/backups/andromeda
echo 'backup: { every: 24h, keep: 14, to: /var/backups/andromeda }' >> $config
groupadd --system readers; usermod -aG readers andromeda
trail=/var/log/andromeda/audit.jsonl; echo "audit: { file: $trail, group: readers }" >> $config
/opt/andromeda service install > /campaign/again
systemctl start andromeda; echo "again: $? $(ready)"
reads() { setpriv --reuid=nobody --regid=$1 --clear-groups cat $trail > /dev/null 2>&1 && echo reads || echo no; }
until_ '[ "$(stat -c %G $trail)" = readers ]'; echo "trail: $(stat -c '%a %U %G' $trail) $(reads readers) $(reads nogroup)"
until_ 'journalctl -u andromeda -o cat | grep -q backup.made'; echo "kept: $(ls /var/backups/andromeda | wc -l)"
head -c 200000000 /dev/zero > /var/lib/andromeda/filler 2>/dev/null; until_ '[ $(ready) = 503 ]'
echo "full: $(curl -s http://127.0.0.1:8080/readyz | grep -o 'the disk is full') $(as_service backup 2>&1 | grep -o 'Make room')"
rm /var/lib/andromeda/filler; until_ '[ $(ready) = 200 ]'; echo "room again: $(ready)"

systemctl stop andromeda; mv /var/lib/andromeda/andromeda.db* /tmp/
systemctl start andromeda 2>/dev/null; echo "no database: $? $(show ExecMainStatus) $(said 'is missing, and there are keys beside it')"
as_service restore newest > /dev/null 2>&1; echo "restored: $?"
dd if=/dev/urandom of=/var/lib/andromeda/andromeda.db bs=4096 seek=20 count=40 conv=notrunc status=none
echo "damaged database: $(/opt/andromeda doctor --quiet --config $config | grep -cE 'damaged(. Restore a backup|, and a backup has to be restored)')"
as_service backup /tmp/copy 2>&1 | grep -o 'is damaged, so no backup was written' | sed 's/^/and its backup: /'
as_service restore newest > /dev/null 2>&1; /opt/andromeda restore --drill --config $config > /campaign/drill; echo "drill: $?"
systemctl start andromeda; echo "restored again: $? $(ready)"
/opt/andromeda check --quiet --config $config; echo "check: $?"
/opt/andromeda doctor --config $config > /campaign/doctor; echo "doctor: $?"
systemctl stop andromeda; echo "stopped: $? $(show ActiveState) $(processes) $(gateway)"

# A service that has to be killed leaves none either.
mkdir -p /run/systemd/system/andromeda.service.d; printf '[Service]\\nTimeoutStopSec=2\\n' > /run/systemd/system/andromeda.service.d/stop.conf
systemctl daemon-reload; systemctl start andromeda; kill -STOP $(show MainPID)
systemctl stop andromeda; until_ '[ -z "$(gateway)" ]'; echo "stopped by force: $(gateway)$(processes)"
`;

test('under systemd: ready, alive, reloaded, restarted where that helps and left alone where it does not', {
  skip: noSystemd(),
}, async () => {
  const { lines, read, context } = await runUnderSystemd(script);
  assert.deepEqual(
    lines,
    [
      'started: 0 active 200',
      'checked: 1',
      "the service's account opens: andromeda.db andromeda.yaml environ gateway_client_ed25519 mem ",
      "the gateway's account: 1 0 opens ",
      'killed: 1 200 same gateway',
      'SIGUSR1: 200 0',
      'reloaded: 0 200 same process same gateway',
      'and nine times: 200 same process 0',
      'started again: 0 200 another process same gateway',
      'hung: 200 1',
      'refused: 1 200 1',
      'misconfigured: 1 failed 78',
      'left alone: failed 0',
      'in words: 1',
      'port taken: 1 failed 69',
      'again: 0 200',
      'trail: 640 andromeda readers reads no',
      'kept: 1',
      'full: the disk is full Make room',
      'room again: 200',
      'no database: 1 78 1',
      'restored: 0',
      'damaged database: 1',
      'and its backup: is damaged, so no backup was written',
      'drill: 0',
      'restored again: 0 200',
      'check: 0',
      'doctor: 0',
      'stopped: 0 inactive 0 ',
      'stopped by force: 0',
    ],
    context,
  );
  assert.match(read('install'), /Make the first operator/);
  assert.doesNotMatch(read('again'), /first operator/);
  assert.match(read('again'), /The configuration that was there stays\./);
  assert.match(read('doctor'), /^ok +audit trail/m);
});
