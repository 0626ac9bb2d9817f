/** The connection protocol from end to end (RFC 4254): what the gateway passes on keeps its order and its meaning. */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { message, SSH, WireReader } from '../../../src/lib/ssh/wire.ts';
import { becomes } from '../../support/app.ts';
import { openLab, test } from '../lab.ts';
import { withEachNode } from './nodes.ts';
import { data, eof, exec, rawClient, requestName } from './raw.ts';

const { CHANNEL_DATA, CHANNEL_EXTENDED_DATA, CHANNEL_EOF, CHANNEL_CLOSE, CHANNEL_REQUEST } = SSH;

withEachNode('channels', {}, (at) => {
  test('exit-status comes before close, and after it nothing; stdout and stderr stay apart', async () => {
    const client = await rawClient(at.lab);
    const to = await client.openSession(7);
    client.transport.send(exec(to, 'echo out; sleep 0.1; echo err >&2; exit 9'));
    await client.next(CHANNEL_CLOSE);
    const ofChannel = client.heard.filter((payload) => (payload[0] ?? 0) >= CHANNEL_DATA);
    assert.ok(ofChannel.every((payload) => payload.readUInt32BE(1) === 7));
    const types = ofChannel.map((payload) => payload[0]);
    const place = (type: number) => types.indexOf(type);
    assert.equal(`${new WireReader(ofChannel[place(CHANNEL_DATA)] ?? Buffer.alloc(0), 5).text()}`, 'out\n');
    const stderr = new WireReader(ofChannel[place(CHANNEL_EXTENDED_DATA)] ?? Buffer.alloc(0), 5);
    assert.deepEqual([stderr.uint32(), stderr.text()], [1, 'err\n']);
    assert.equal(exitStatus(ofChannel), 9);
    assert.ok(place(CHANNEL_EOF) >= 0 && place(CHANNEL_EOF) < place(CHANNEL_CLOSE));
    assert.ok(exitStatus(ofChannel.slice(0, place(CHANNEL_CLOSE))) !== undefined);
    await sleep(100);
    assert.equal(client.types().at(-1), CHANNEL_CLOSE);
    client.close();
  });

  test('exit-signal comes through by name, and no exit-status with it', async () => {
    const client = await rawClient(at.lab);
    client.transport.send(exec(await client.openSession(0), 'kill -KILL $$'));
    await client.next(CHANNEL_CLOSE);
    const requests = client.heard.filter((payload) => payload[0] === CHANNEL_REQUEST);
    const names = requests.map(requestName).filter((name) => name.startsWith('exit'));
    assert.deepEqual(names, ['exit-signal']);
    const signal = requests.find((payload) => requestName(payload) === 'exit-signal');
    const fields = new WireReader(signal ?? Buffer.alloc(0), 5);
    fields.text();
    fields.bool();
    assert.equal(fields.text(), 'KILL');
    client.close();
  });

  test('early data: input and its end, sent before the command is even accepted, all arrive', async () => {
    const client = await rawClient(at.lab);
    const to = await client.openSession(1);
    client.transport.send(exec(to, 'wc -c'));
    client.transport.send(data(to, Buffer.alloc(30_000, 'x')));
    client.transport.send(data(to, 'y'));
    client.transport.send(eof(to));
    const answer = new WireReader(await client.next(CHANNEL_DATA), 5);
    assert.equal(answer.text().trim(), '30001');
    client.close();
  });

  test('the modes of a terminal hold for what is typed ahead: with ECHO off none of it is shown', async () => {
    const client = await rawClient(at.lab);
    const to = await client.openSession(1);
    const size = { raw: Buffer.from([0, 0, 0, 80, 0, 0, 0, 24, ...Buffer.alloc(8)]) };
    const echoOff = Buffer.from([53, 0, 0, 0, 0, 0]);
    client.transport.send(message(CHANNEL_REQUEST, { uint32: to }, 'pty-req', true, 'xterm', size, echoOff));
    client.transport.send(exec(to, 'read line; echo "$line" | tr a-z A-Z'));
    client.transport.send(data(to, 'secret\n'));
    await client.next(CHANNEL_CLOSE);
    assert.equal(said(client.heard), 'SECRET\r\n');
    client.close();
  });

  test('half-close: after our end of input the other side talks on, and takes its own time', async () => {
    const client = await rawClient(at.lab);
    const to = await client.openSession(1);
    client.transport.send(exec(to, 'cat; sleep 0.3; echo more'));
    client.transport.send(data(to, 'last'));
    client.transport.send(eof(to));
    await becomes(() => said(client.heard), 'lastmore\n');
    await client.next(CHANNEL_CLOSE);
    client.close();
  });

  test('the other side’s end of output leaves input open', async () => {
    const client = await rawClient(at.lab);
    const to = await client.openSession(1);
    client.transport.send(exec(to, 'exec >&- 2>&-; read line; exit $(printf %s "$line" | wc -c)'));
    await client.next(SSH.CHANNEL_SUCCESS);
    await sleep(200);
    assert.ok(!client.types().includes(CHANNEL_CLOSE));
    client.transport.send(data(to, 'eleven char\n'));
    await client.next(CHANNEL_CLOSE);
    assert.equal(exitStatus(client.heard), 11);
    client.close();
  });

  test('what comes late for a channel that is being closed, or is no more, ends nothing', async () => {
    const client = await rawClient(at.lab);
    const other = await client.openSession(9);
    const { transport } = client;
    const wider = (to: number) => message(SSH.CHANNEL_WINDOW_ADJUST, { uint32: to }, { uint32: 100 });
    const close = (to: number) => message(CHANNEL_CLOSE, { uint32: to });
    // As sshj does: all is read after both sides have closed.
    const ended = await client.openSession(1);
    transport.send(exec(ended, 'echo out'));
    await client.next(CHANNEL_CLOSE);
    for (const late of [close(ended), wider(ended)]) transport.send(late);
    // Closed by one thread while others read, write, and change the size of the terminal.
    const closed = await client.openSession(2);
    transport.send(exec(closed, 'sleep 60'));
    const resize = message(CHANNEL_REQUEST, { uint32: closed }, 'window-change', false, {
      raw: Buffer.alloc(16),
    });
    const again = [wider(closed), data(closed, 'x'), resize, eof(closed), close(closed)];
    for (const late of [close(closed), ...again]) transport.send(late);
    transport.send(exec(other, 'echo still here'));
    await becomes(() => said(client.heard, 9) === 'still here\n' || client.ended() !== '', true);
    assert.equal(client.ended(), '');
    client.close();
  });

  test('windows are the two ends’: what has no room waits, and other channels do not wait for it', async () => {
    const client = await rawClient(at.lab);
    const narrow = await client.openSession(1, 1000);
    client.transport.send(exec(narrow, 'seq 1 5000'));
    await becomes(() => said(client.heard, 1).length, 1000);
    const wide = await client.openSession(2);
    client.transport.send(exec(wide, 'echo other'));
    await becomes(() => said(client.heard, 2), 'other\n');
    assert.equal(said(client.heard, 1).length, 1000);
    client.transport.send(message(SSH.CHANNEL_WINDOW_ADJUST, { uint32: narrow }, { uint32: 1_000_000 }));
    await becomes(() => said(client.heard, 1).length, 23_893);
    client.close();
  });

  test('many channels, opened and used at once, are closed and their numbers free again', async () => {
    const client = await rawClient(at.lab);
    // The lab's sshd allows 100 and forgets a closed one a little later.
    const count = 45;
    for (const round of [1, 2]) {
      const numbers = Array.from({ length: count }, (_, i) => i);
      const nodes = await Promise.all(numbers.map((number) => client.openSession(number)));
      for (const [i, to] of nodes.entries()) client.transport.send(exec(to, `echo ${i}; exit ${i}`));
      const closes = numbers.map(() => client.next(CHANNEL_CLOSE));
      for (const closed of closes) {
        const number = (await closed).readUInt32BE(1);
        client.transport.send(message(CHANNEL_CLOSE, { uint32: nodes[number] ?? 0 }));
      }
      for (const i of numbers) assert.equal(said(client.heard, i), `${i}\n`.repeat(round));
    }
    await becomes(() => at.lab.gateway.sessions().some(({ channels }) => channels === 0), true);
    client.close();
  });
});

function exitStatus(heard: readonly Buffer[]): number | undefined {
  const requests = heard.filter((payload) => payload[0] === CHANNEL_REQUEST);
  const status = requests.find((payload) => requestName(payload) === 'exit-status');
  return status?.readUInt32BE(status.length - 4);
}

/** What a channel has said on stdout so far. */
function said(heard: readonly Buffer[], channel = 1): string {
  return heard
    .filter((payload) => payload[0] === CHANNEL_DATA && payload.readUInt32BE(1) === channel)
    .map((payload) => new WireReader(payload, 5).text())
    .join('');
}

test('a login node that asks for signs of life gets them, and OpenSSH’s client from the gateway', async () => {
  await using lab = await openLab({ keepaliveMs: 300, keepaliveMisses: 20, recheckMs: 200 }, [
    'ClientAliveInterval 1',
    'ClientAliveCountMax 3',
  ]);
  const ran = await lab.ssh([
    '-v',
    '-o',
    'ServerAliveInterval=1',
    '-o',
    'ServerAliveCountMax=3',
    'gateway',
    'sleep 6; echo done',
  ]);
  assert.deepEqual([ran.status, ran.out], [0, 'done\n'], ran.err);
  assert.match(ran.err, /client_input_global_request: rtype keepalive@openssh\.com want_reply 1/);
});
