/** New keys in the midst of a session (RFC 4253, section 9), by their age; by volume they are in copies.test.ts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { startMaster, withEachNode } from './nodes.ts';

withEachNode('new keys by time', { rekeyMs: 400, recheckMs: 200 }, (at) => {
  test('in an otherwise quiet session, which goes on', async () => {
    const ran = await at.lab.ssh(['-v', 'gateway', 'sleep 2; cat'], 'still here');
    assert.deepEqual([ran.status, ran.out], [0, 'still here'], ran.err);
    const exchanges = ran.err.match(/SSH2_MSG_NEWKEYS received/g)?.length ?? 0;
    assert.ok(exchanges > 2, `${exchanges} key exchanges`);
  });

  if (at.kind === 'sshd')
    test('while a login node stands still, what its channels may be sent does not pile up', async (t) => {
      const way = [...(await startMaster(t, at.lab)), 'gateway'];
      // In all twice as much as may wait; while keys are exchanged, all that is in sockets is read.
      const size = 4_000_000;
      const copy = `(sleep 1.5; head -c ${size} /dev/zero) | ssh ${[...at.lab.options, ...way].join(' ')} wc -c`;
      const channels = Array.from({ length: 8 }, () => at.lab.run('bash', ['-c', copy]));
      await sleep(1000);
      // All channels are one process of the node's; it is stopped from within, for several times the age of keys.
      const stop = await at.lab.ssh([...way, 'node=$PPID; (sleep 3; kill -CONT $node) & kill -STOP $node']);
      const ended = () => JSON.stringify(at.lab.events.filter(({ event }) => event === 'gateway.node.ended'));
      assert.equal(stop.status, 0, stop.err + ended());
      const ran = await Promise.all(channels);
      for (const { status, out, err } of ran)
        assert.deepEqual([status, out.trim()], [0, `${size}`], err + ended());
    });
});
