/**
 * `andromeda service upgrade` and `rollback` under a real systemd on bad days: killed at every step, with units in any state, and with a
 * new program that fails, hangs, or does so once it has changed the database.
 */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { limit } from '../support/limit.ts';
import { nextVersion } from '../support/next-version.ts';
import { noSystemd, runUnderSystemd } from '../support/systemd.ts';
import { begin, goBack, goUp } from '../support/upgrade-script.ts';

const skip = noSystemd();
const skipWithout = (program: string) => skip || (!existsSync(program) && `${program} is not installed`);

/**
 * Each of the two is killed at every file that it puts in place or removes and every program that it starts, and then one of the two, in
 * turn, has to end it. What the killed one has started goes on to its end.
 */
const kills = `${begin}
back="/usr/local/bin/andromeda service rollback"
ended() { until_ '! pgrep -f " (schema-process|service) " > /dev/null'; }
# Whether it is one of the two versions as a whole, and what there is to go back to fits. A copy that was cut off goes with the next upgrade.
whole() {
  case "$(state) $(left | sed -E 's/andromeda\\.next(\\.new)? //')" in
    'old old old 200: ada ') echo old;;
    'new new new 200: ada next_version andromeda.before andromeda.before.json ') echo new;;
    *) echo "neither: $(state) $(left)";;
  esac
}
# The command, from which version, the kind of call: kills it at the first, the second and so on until one is left alone.
at_every() {
  for n in $(seq 40); do
    if [ "$(whole)" = old ] && [ $2 = new ]; then $up service upgrade > /dev/null; fi
    if [ "$(whole)" = new ] && [ $2 = old ]; then $back > /dev/null; fi
    [ "$(whole)" = $2 ] || { echo "no $2 to begin with: $(whole)"; return; }
    { strace -qq -o /dev/null -e inject=$3:signal=KILL:when=$n $1 > /dev/null; } 2> /dev/null && break
    ended
    then=$([ $((n % 2)) = 0 ] && echo "$up service upgrade" || echo $back)
    $then > /campaign/then 2>&1; end="$1, $3 $n, then $then: $? $(whole) $(tail -1 /campaign/then)"
    echo "$end" >> /campaign/ends
    case "$end" in *upgrade:\\ 0\\ new\\ * | *rollback:\\ 0\\ old\\ * | *rollback:\\ 1\\ old\\ *There\\ is\\ no\\ upgrade\\ to\\ go\\ back*) ;; *) echo "$end";; esac
  done
  [ $n -gt 1 ] && echo "$3: each"
}
for call in rename link clone; do at_every "$up service upgrade" old $call; done
for call in rename unlink clone; do at_every "$back" new $call; done
`;

test('killed at any step of an upgrade or of a rollback, either of the two then ends well', {
  skip: skipWithout('/usr/bin/strace'),
  timeout: limit(3_600_000),
}, async () => {
  const { lines, read, context } = await runUnderSystemd(kills, { withNext: true });
  const all = ['rename', 'link', 'clone', 'rename', 'unlink', 'clone'];
  assert.deepEqual(
    lines,
    all.map((call) => `${call}: each`),
    `${read('ends')}\n${context}`,
  );
});

/** What becomes of units on hosts: each is tried before an upgrade, and before a rollback. */
const rounds = `${begin}
sessions() { gateway | wc -w; }
damage() {
  case $1 in
    1) rm /etc/systemd/system/andromeda-gateway.socket; systemctl daemon-reload;;
    2) rm $units;;
    3) rm $units; systemctl daemon-reload; andromeda service install > /dev/null;;
    4) systemctl stop andromeda-gateway.socket 2> /dev/null; echo broken > /etc/systemd/system/andromeda-gateway@.service; systemctl daemon-reload;;
    5) systemctl stop andromeda; rm $units; systemctl daemon-reload; andromeda service install > /dev/null; systemctl start andromeda;;
    6) systemctl mask --runtime andromeda-gateway.socket 2> /dev/null; rm /etc/systemd/system/andromeda-gateway.socket; systemctl daemon-reload;;
  esac
}
for round in 1 2 3; do
  order $([ $round = 2 ] || echo none)
  damage $((2 * round - 1)); ${goUp} > /dev/null; echo "up: $? $(state)"
  damage $((2 * round)); ${goBack} > /dev/null; echo "back: $? $(state)"
done
damage 1; andromeda service install > /dev/null; kill $(gateway); until_ '[ -n "$(gateway)" ] && [ $(ready) = 200 ]'; echo "installed: $(state)"
rm $units; systemctl daemon-reload
$up service upgrade 2> /campaign/none; echo "no unit: $? $(state)"
andromeda service install > /dev/null; systemctl disable andromeda 2> /dev/null
order none; ${goUp} > /dev/null; echo "up again: $? $(state) $(systemctl is-enabled andromeda)"
`;

test('three rounds there and back, with units removed, broken, stopped and masked between', {
  skip,
  timeout: limit(3_600_000),
}, async () => {
  const { lines, read, context } = await runUnderSystemd(rounds, { withNext: true });
  assert.deepEqual(
    lines,
    [
      'up: 0 new new new 200: ada',
      'back: 0 old old old 200: ada',
      'up: 0 new new new 200: ada next_version',
      'back: 0 old old old 200: ada',
      'up: 0 new new new 200: ada',
      'back: 0 old old old 200: ada',
      'installed: old old old 200: ada',
      'no unit: 1 old old missing 200: ada',
      'up again: 0 new new new 200: ada disabled',
    ],
    context,
  );
  assert.match(
    read('none'),
    /systemd has no service of ours here\. `andromeda service install` makes one\.$/m,
  );
});

const failures = `${begin}
echo TimeoutStartSec=60 >> /run/systemd/system/andromeda.service.d/test.conf; systemctl daemon-reload
${goUp} > /dev/null; add bob; back="$(command -v andromeda) service rollback"
copy=$(echo /var/lib/andromeda/before-upgrade/*); chown root $copy; pid=$(show MainPID)
$back 2> /campaign/unreadable; echo "unreadable: $? $(state) $([ $pid = $(show MainPID) ] && echo runs on)"; chown andromeda $copy
strace -f --seccomp-bpf -qq -o /dev/null -P /var/lib/andromeda/.restore -e inject=mkdir:error=ENOSPC $back > /dev/null 2> /campaign/full; echo "full: $? $(state)"
cp $config config; echo 'newer: true' >> $config; $back 2> /campaign/config; echo "another configuration: $? $([ $pid != $(show MainPID) ] && [ $(ready) = 200 ] && echo runs on)"; cp config $config
# The terminal is gone once the copy is in place: what is lost is said again.
strace -qq -o /dev/null -e inject=rename:signal=KILL:when=3 $back > /campaign/cut 2> /dev/null
${goBack} > /campaign/back; echo "back: $? $(state) $(left)"

order none; ${goUp} > /dev/null; echo "no step: $? $(state)"
order none "$is_next"; /opt/andromeda service upgrade 2> /campaign/older; echo "a failure after it: $? $(state) $(left)"
systemctl stop andromeda; $up service upgrade > /campaign/same; echo "stopped: $? $(show ActiveState)"
order none; /opt/andromeda service upgrade > /campaign/stopped; echo "stopped: $? $(show ActiveState) $(left)"
systemctl start andromeda; ${goBack} > /dev/null; echo "started since: $? $(state)"
/opt/andromeda service upgrade > /dev/null

for what in fail hang; do order $what; ${goUp} 2> /campaign/$what; echo "$what: $? $(state) $(left)"; done
order '' "! $is_next"; ${goUp} > /campaign/lost 2> /campaign/late; echo "late: $? $(state)"
order '' "if $is_next; then $(bootstrap carol); exit 1; fi"; ${goUp} 2> /campaign/written; echo "late, and written: $? $(left)"
order; ${goBack} > /campaign/gone; echo "back from that too: $? $(state)"
`;

test('where the new program does not serve, or there is no way back, what was there goes on', {
  skip: skipWithout('/usr/bin/strace'),
  timeout: limit(3_600_000),
}, async () => {
  const { lines, read, context } = await runUnderSystemd(failures, { withNext: true });
  assert.deepEqual(
    lines,
    [
      'unreadable: 1 new new new 200: ada bob next_version runs on',
      'full: 1 new new new 200: ada bob next_version',
      'another configuration: 1 runs on',
      'back: 0 old old old 200: ada ',
      'no step: 0 new new new 200: ada',
      'a failure after it: 1 new new new 200: ada ',
      'stopped: 0 inactive',
      'stopped: 0 inactive andromeda.before andromeda.before.json ',
      'started since: 0 new new new 200: ada',
      'fail: 1 old old old 200: ada ',
      'hang: 1 old old old 200: ada ',
      'late: 1 old old old 200: ada',
      'late, and written: 1 andromeda.before andromeda.before.json ',
      'back from that too: 0 old old old 200: ada',
    ],
    context,
  );
  const lost =
    /the copy of (\S+) takes its place\. What was written since is lost, of the audit trail:\n\n {2}1 bootstrap\n/;
  const [, madeAt] = lost.exec(read('cut')) ?? [];
  assert.equal(lost.exec(read('back'))?.[1], madeAt, read('back'));
  assert.ok(read('back').includes(`again. The database is that of ${madeAt};`), read('back'));
  assert.match(read('gone'), lost);
  assert.match(read('unreadable'), /\.backup cannot be read: this account may not\. Nothing was changed\.$/m);
  assert.match(
    read('full'),
    /ENOSPC.* The service was stopped, which ended SSH sessions; it was started again and serves\.$/m,
  );
  assert.match(read('config'), /newer/);
  for (const what of ['fail', 'hang'])
    assert.match(
      read(what),
      new RegExp(
        `${nextVersion} did not serve: .* again, and the service runs it\\. The database is as it is`,
      ),
    );
  assert.match(read('lost'), /takes its place\. The audit trail has nothing since/);
  assert.match(read('late'), /again, and the service runs it\. The database is that of /);
  assert.match(
    read('written'),
    /It stays: The audit trail has entries of what people did since .* `andromeda service rollback` goes back, and loses/,
  );
});
