/** `andromeda service upgrade` and `rollback` under a real systemd, from the version before to one that is built here, by the lines of the page. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { readPage } from '../docs/pages.ts';
import { nextVersion } from '../support/next-version.ts';
import { noSystemd, runUnderSystemd } from '../support/systemd.ts';

const { commands } = readPage('operations.md', 'Upgrade');
const goUp = commands.find((line) => line.endsWith(' service upgrade')) ?? '';
const goBack = commands.find((line) => line.endsWith(' service rollback')) ?? '';
const others = commands.filter((line) => line !== goUp && line !== goBack);
/** Up and back by the lines of the page: killed on the way, and with a new program that fails, hangs, or does so once it has changed the database. */
const upgrades = `
mount -t tmpfs tmpfs /usr/local/bin; cp /program/andromeda /usr/local/bin/andromeda
mkdir /opt/release; cd /opt/release
install -m 0644 /program/next andromeda-${nextVersion}-linux-x64; sha256sum andromeda-* > SHA256SUMS
andromeda service install > /campaign/install || exit
mkdir -p /run/systemd/system/andromeda.service.d
printf '%s\\n' '[Service]' TimeoutStartSec=25 TimeoutStopSec=5 RestartSec=1 'ExecStartPost=/bin/sh /opt/release/late' > /run/systemd/system/andromeda.service.d/test.conf
systemctl daemon-reload
order() { echo $1 > /etc/andromeda/step; echo "$2" > late; }
is_next="andromeda version | grep -q ${nextVersion}"
bootstrap() { echo "echo 'correct horse battery' | andromeda admin bootstrap --email $1@x.example --config $config"; }
add() { HOME=/tmp setpriv --reuid=andromeda --regid=andromeda --init-groups sh -c "$(bootstrap $1)" > /dev/null; }
cat > database.py << END
import sqlite3
database = sqlite3.connect('file:/var/lib/andromeda/andromeda.db?mode=ro', uri=True)
print(*[name.split('@')[0] for name, in database.execute("""select primary_email from users where primary_email like '%@x.example'
  union select name from sqlite_master where name = 'next_version' order by 1""")])
END
version_of() { case $(stat -Lc %s $1 2> /dev/null) in $(stat -c %s /program/andromeda)) echo old;; $(stat -c %s /program/next)) echo new;; *) echo none; esac; }
# The program in place, the one that runs, the unit, whether it serves, and the database.
state() {
  echo "$(version_of $(command -v andromeda)) $(version_of /proc/$(show MainPID)/exe)" \\
    "$(grep -q 'the next one' /etc/systemd/system/andromeda.service && echo new || echo old) $(ready): $(python3 database.py)"
}
left() { (cd /usr/local/bin; ls | grep -v '^andromeda$' | tr '\\n' ' '); }
# A command, killed at the nth call of a kind.
killed() { { strace -qq -o /dev/null -e inject=$1:signal=KILL:when=$2 $3 >> /campaign/said; echo "$1 $2: $? $(state)"; } 2> /dev/null; }

order; systemctl start andromeda; until_ '[ $(ready) = 200 ]'; add ada; echo "old: $(state)"
${others.map((line) => `${line} > /dev/null || echo failed`).join('\n')}
up=$(echo ${goUp.split(' ')[0]})
for n in 2 4; do killed rename $n "$up service upgrade"; done
killed clone 6 "$up service upgrade"; killed rename 4 "$up service upgrade"
${goUp} > /campaign/up; echo "up: $? $(state) $(left)"
${goUp} > /campaign/again; echo "again: $?"

add bob; back="$(command -v andromeda) service rollback"
copy=$(echo /var/lib/andromeda/before-upgrade/*); chown root $copy; pid=$(show MainPID)
$back 2> /campaign/unreadable; echo "unreadable: $? $(state) $([ $pid = $(show MainPID) ] && echo runs on)"; chown andromeda $copy
strace -f --seccomp-bpf -qq -o /dev/null -P /var/lib/andromeda/.restore -e inject=mkdir:error=ENOSPC $back > /dev/null 2> /campaign/full; echo "full: $? $(state)"
killed clone 8 "$back"; killed rename 2 "$back"; killed rename 2 "$back"; killed clone 6 "$back"; killed unlink 1 "$back"
${goBack} > /campaign/back; echo "back: $? $(state) $(left)"
${goBack} 2> /campaign/twice; echo "twice: $?"

order none; ${goUp} > /dev/null; echo "no step: $? $(state)"
order none "$is_next"; /opt/andromeda service upgrade 2> /campaign/older; echo "a failure after it: $? $(state) $(left)"
order none; add bob; ${goBack} > /campaign/kept; echo "back from that: $? $(state)"

for what in fail hang; do order $what; ${goUp} 2> /campaign/$what; echo "$what: $? $(state) $(left)"; done
order '' "! $is_next"; ${goUp} > /campaign/lost 2> /campaign/late; echo "late: $? $(state)"
order '' "if $is_next; then $(bootstrap carol); exit 1; fi"; ${goUp} 2> /campaign/written; echo "late, and written: $? $(left)"
order; ${goBack} > /campaign/gone; echo "back from that too: $? $(state)"
`;

test('under systemd a new version comes and goes by the lines of the page, whenever it is killed, and where it does not serve', {
  skip: noSystemd() || (!existsSync('/usr/bin/strace') && 'strace is not installed'),
  timeout: 480_000,
}, async () => {
  const { lines, read, context } = await runUnderSystemd(upgrades, { withNext: true });
  assert.deepEqual(
    lines,
    [
      'old: old old old 200: ada',
      'rename 2: 137 old old old 200: ada',
      'rename 4: 137 new old old 200: ada',
      'clone 6: 137 new old new 200: ada',
      'rename 4: 137 new new new 200: ada next_version',
      'up: 0 new new new 200: ada next_version andromeda.before ',
      'again: 0',
      'unreadable: 1 new new new 200: ada bob next_version runs on',
      'full: 1 new new new 200: ada bob next_version',
      'clone 8: 137 new none new 000: ada bob next_version',
      'rename 2: 137 new none new 000: ada',
      'rename 2: 137 new none old 000: ada',
      'clone 6: 137 old none old 000: ada',
      'unlink 1: 137 old old old 200: ada',
      'back: 0 old old old 200: ada ',
      'twice: 1',
      'no step: 0 new new new 200: ada',
      'a failure after it: 1 new new new 200: ada andromeda.before ',
      'back from that: 0 old old old 200: ada bob',
      'fail: 1 old old old 200: ada bob ',
      'hang: 1 old old old 200: ada bob ',
      'late: 1 old old old 200: ada bob',
      'late, and written: 1 andromeda.upgrading ',
      'back from that too: 0 old old old 200: ada bob',
    ],
    context,
  );
  assert.match(read('up'), /^The service is 9\.9\.9 now; it was \d/);
  assert.match(read('again'), /is 9\.9\.9 already\. Nothing was changed\.$/m);
  const lost =
    /the copy of (\S+) takes its place\. What was written since is lost, of the audit trail:\n\n {2}1 bootstrap\n/;
  const [, madeAt] = lost.exec(read('said')) ?? [];
  assert.equal(lost.exec(read('back'))?.[1], madeAt, read('back'));
  assert.ok(read('back').includes(`again. The database is that of ${madeAt};`), read('back'));
  assert.match(read('gone'), lost);
  assert.match(read('unreadable'), /\.backup cannot be read: EACCES\. Nothing was changed\.$/m);
  assert.match(
    read('full'),
    /ENOSPC.* The service was stopped, which ended SSH sessions; it was started again and serves\.$/m,
  );
  assert.match(read('twice'), /There is no upgrade to go back from/);
  assert.match(read('kept'), /The database is as it is: nothing is lost\.$/m);
  for (const what of ['fail', 'hang'])
    assert.match(
      read(what),
      /9\.9\.9 did not serve: .* again, and the service runs it\. The database is as it is/,
    );
  assert.match(read('lost'), /takes its place\. The audit trail has nothing since/);
  assert.match(read('late'), /again, and the service runs it\. The database is that of /);
  assert.match(
    read('written'),
    /It stays: The audit trail has entries of what people did since .* `andromeda service rollback` goes back, and loses/,
  );
});
