/**
 * `andromeda service upgrade` and `rollback` under a real systemd, by the lines of the page, and with a unit removed by hand between.
 * What is killed on the way, and what fails, is in upgrade.full.test.ts.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limit } from '../support/limit.ts';
import { noSystemd, runUnderSystemd } from '../support/systemd.ts';
import { begin, goBack, goUp } from '../support/upgrade-script.ts';

const script = `${begin}
echo "old: $(state)"
${goUp} > /campaign/up; echo "up: $? $(state) $(left)"
${goUp} > /campaign/again; echo "again: $?"
add bob
# systemd goes on saying that the socket is active, and has closed it.
rm /etc/systemd/system/andromeda-gateway.socket; systemctl daemon-reload
${goBack} > /campaign/back; echo "back: $? $(state) $(left)"
${goBack} 2> /campaign/twice; echo "twice: $?"
`;

test('under systemd a new version comes and goes by the lines of the page, whatever became of the units', {
  skip: noSystemd(),
  timeout: limit(900_000),
}, async () => {
  const { lines, read, context } = await runUnderSystemd(script, { withNext: true });
  assert.deepEqual(
    lines,
    [
      'old: old old old 200: ada',
      'up: 0 new new new 200: ada next_version andromeda.before andromeda.before.json ',
      'again: 0',
      'back: 0 old old old 200: ada ',
      'twice: 1',
    ],
    context,
  );
  assert.match(read('up'), /^The service is 9\.9\.9 now; it was \d/);
  assert.match(read('again'), /is 9\.9\.9 already\. Nothing was changed\.$/m);
  const lost =
    /the copy of (\S+) takes its place\. What was written since is lost, of the audit trail:\n\n {2}1 bootstrap\n/;
  const [, madeAt] = lost.exec(read('back')) ?? [];
  assert.ok(read('back').includes(`again. The database is that of ${madeAt};`), read('back'));
  assert.match(read('twice'), /There is no upgrade to go back from/);
});
