/** `admin audit` and `admin audit verify`. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { generateKeyPairSync, sign } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import {
  type AuditRecord,
  auditHash,
  auditPublicKey,
  headText,
  type SignedHead,
} from '../../../src/domain/audit/audit.ts';
import { program } from '../../support/program.ts';
import { json, type Seen, says } from '../harness.ts';
import { signedIn, taken } from '../small-api.ts';
import { alphaId, lookups } from './operator-api.ts';

type Entry = Partial<AuditRecord> & { seq: number; hash: string; actor_email: string };

/** A trail as the API gives it: what is not known is left out. */
function trail(length: number): Entry[] {
  const entries: Entry[] = [];
  for (let seq = 1; seq <= length; seq++) {
    const record: AuditRecord = {
      seq,
      at: new Date(Date.UTC(2026, 0, 1) + seq * 1000).toISOString(),
      actor_user_id: 'user_ada',
      command_id: seq % 2 ? `command_${seq}` : null,
      operation: 'operatorAddMember',
      target: 'physics/bob@physics.example',
      organization_id: seq % 3 ? 'org_1' : null,
      cluster_id: seq % 5 ? null : alphaId,
      subject_user_id: 'user_bob',
      reason: 'Zoë – new',
      source_address: '127.0.0.1',
      result: 'done',
      details: '',
    };
    const hash = auditHash(entries.at(-1)?.hash ?? '', record);
    const known = Object.fromEntries(Object.entries(record).filter(([, value]) => value !== null));
    entries.push({ ...known, seq, hash, actor_email: 'ada@physics.example' });
  }
  return entries;
}

/** Gives pages as the API does: behind `after`, at most `limit`. */
function paged(entries: () => Entry[]) {
  return (seen: Seen, response: ServerResponse) => {
    const query = new URL(seen.url, 'http://x').searchParams;
    const [after, limit] = [Number(query.get('after')), Number(query.get('limit'))];
    json(response, 200, {
      entries: entries()
        .filter(({ seq }) => seq > after)
        .slice(0, limit),
    });
  };
}

const keys = generateKeyPairSync('ed25519');
const key = auditPublicKey(keys.publicKey);

/** The signed head of an entry. */
function signedHead({ seq, hash }: Entry, by = keys): SignedHead {
  const head = { seq, hash, at: '2026-01-01T00:00:00.000Z' };
  const signature = sign(null, Buffer.from(headText(head)), by.privateKey).toString('base64');
  return { ...head, key: auditPublicKey(by.publicKey), signature };
}

async function withTrail(t: TestContext, entries: () => Entry[], heads: () => SignedHead[] = () => []) {
  const page = paged(entries);
  const routes: Record<string, (seen: Seen, response: ServerResponse) => void> = Object.fromEntries(
    [0, 500, 1000, 1500].map((after) => [`GET /operator/audit?limit=500&after=${after}`, page]),
  );
  routes['GET /operator/audit/heads'] = (_seen, response) =>
    json(response, 200, { key, other_keys: [], heads: heads() });
  const head = () => `${entries().at(-1)?.seq}:${entries().at(-1)?.hash}`;
  return { ...(await signedIn(t, { ...lookups, ...routes })), head };
}

test('admin audit prints JSON lines, oldest first, page by page', async (t) => {
  const entries = trail(1001);
  const { run, requests } = await withTrail(t, () => entries);
  const { status, stdout, stderr } = await run(['admin', 'audit']);
  assert.deepEqual([status, stderr], [0, '']);
  assert.equal(stdout, entries.map((entry) => `${JSON.stringify(entry)}\n`).join(''));
  assert.deepEqual(
    taken(requests),
    [0, 500, 1000].map((after) => `GET /operator/audit?limit=500&after=${after}`),
  );
});

test('admin audit filters by person, cluster and time', async (t) => {
  const query =
    'from=2026-01-01T00%3A00%3A00.000Z&to=2026-02-01T00%3A00%3A00.000Z&person=bob%40physics.example';
  const path = `/operator/audit?${query}&cluster=alpha&limit=500&after=0`;
  const { run, requests } = await signedIn(t, { ...lookups, [`GET ${path}`]: { entries: [] } });
  const filter = ['--person=bob@physics.example', '--cluster=alpha', '--from=2026-01-01', '--to=2026-02-01'];
  await says(run(['admin', 'audit', ...filter]), 0, '', '');
  taken(requests);
  const before = Date.now();
  await run(['admin', 'audit', '--since', '2h']);
  const from = new URL(requests[0]?.url ?? '', 'http://x').searchParams.get('from') ?? '';
  assert.ok(Math.abs(Date.parse(from) - (before - 7_200_000)) < 10_000, from);
});

test('admin audit --human says each entry in a sentence that cannot drive the terminal', async (t) => {
  const [one] = trail(1);
  const entry = {
    ...one,
    actor_name: 'Ada\u001b[31m',
    operation: 'removeMember',
    subject_name: 'Bob',
    reason: 'left\nus',
  };
  const refused = { ...entry, seq: 2, result: 'refused: forbidden', details: 'Only owners do that.' };
  const path = 'GET /operator/audit?result=refused&limit=500&after=0';
  const { run } = await signedIn(t, {
    ...lookups,
    'GET /operator/audit?limit=500&after=0': { entries: [entry, refused] },
    [path]: { entries: [refused] },
  });
  const sentence = (verb: string, rest = '') =>
    `2026-01-01 00:00:01Z  Ada\\u001b[31m ${verb} Bob from an organization: left us${rest} [127.0.0.1]\n`;
  const last = sentence('tried to remove', ' – refused: Only owners do that.');
  await says(run(['admin', 'audit', '--human']), 0, '', sentence('removed') + last);
  assert.equal((await run(['admin', 'audit', '--human', '--refused'])).stdout, last);
});

test('a reader of the trail that has seen enough ends it, without a failure', async (t) => {
  const page = trail(500);
  let asked = 0;
  const endless = (_seen: Seen, response: ServerResponse) => {
    const last = page.at(-1);
    asked++;
    // The same page for ever: only a reader that goes away ends it.
    json(response, 200, { entries: last ? [...page.slice(0, -1), { ...last, seq: 500 * (asked % 2) }] : [] });
  };
  const { directory, url } = await signedIn(t, {
    'GET /operator/audit?limit=500&after=0': endless,
    'GET /operator/audit?limit=500&after=500': endless,
  });
  const script = '"$0" admin audit | head -n 1; echo ":$PIPESTATUS"';
  const child = spawn('bash', ['--norc', '-c', script, program], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH, XDG_STATE_HOME: join(directory, '..'), ANDROMEDA_URL: url },
  });
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  assert.deepEqual([stdout, stderr], [`${JSON.stringify(page[0])}\n:0\n`, '']);
});

test('admin audit verify prints the number of entries and the head, and needs it to stay in the trail', async (t) => {
  const whole = trail(501);
  let entries = whole;
  const { run, head } = await withTrail(t, () => entries);
  const verify = (...args: string[]) => run(['admin', 'audit', 'verify', ...args]);
  await says(verify(), 0, 'No head is signed yet.\n', `entries 501\nhead ${head()}\n`);
  const noted = head();
  assert.equal((await verify('--head', noted)).status, 0);

  entries = trail(502);
  assert.equal((await verify('--head', noted)).status, 0, 'the trail may have grown');
  assert.equal((await verify('--head', '0:')).status, 0);

  entries = whole.slice(0, 499);
  const cut = 'The trail was cut: it ends at entry 499, and entry 501 was noted earlier.\n';
  await says(verify('--head', noted), 1, cut, '');

  const rewritten = 'The trail was rewritten: entry 7 is not the one noted earlier.\n';
  await says(verify('--head', `7:${whole[7]?.hash}`), 1, rewritten);

  entries = [];
  assert.equal((await verify()).stdout, 'entries 0\nhead 0:\n');
});

test('admin audit verify names the first entry that does not fit', async (t) => {
  const whole = trail(520);
  let entries = whole;
  const { run } = await withTrail(t, () => entries);
  const changed = (seq: number, change: Partial<Entry>) =>
    whole.map((entry) => (entry.seq === seq ? { ...entry, ...change } : entry));
  const rows: [Entry[], number][] = [
    [changed(3, { reason: 'another' }), 3],
    [changed(510, { subject_user_id: 'user_eve' }), 510],
    [changed(2, { command_id: 'command_2' }), 2],
    [changed(500, { hash: `sha256:${'0'.repeat(64)}` }), 500],
    [whole.filter(({ seq }) => seq !== 7), 8],
    [whole.slice(1), 2],
  ];
  for (const [trailNow, seq] of rows) {
    entries = trailNow;
    const sentence = `Entry ${seq} is the first that does not fit: it was changed, or what stood before it. Once you know why, \`andromeda admin audit accept-break ${seq}\` on the host has the trail go on behind it.\n`;
    await says(run(['admin', 'audit', 'verify']), 1, sentence, '');
  }
});

test('admin audit verify finds a trail that was computed again or cut, by a head that was signed before', async (t) => {
  const whole = trail(20);
  let entries = whole;
  let heads = [signedHead(whole[6] as Entry), signedHead(whole[19] as Entry)];
  const { run, head } = await withTrail(
    t,
    () => entries,
    () => heads,
  );
  const verify = (...args: string[]) => run(['admin', 'audit', 'verify', ...args]);
  await says(verify(), 0, 'Signed up to entry 20.\n', `entries 20\nhead ${head()}\n`);
  assert.equal((await verify('--key', key)).status, 0);

  entries = forged(whole, 5);
  assert.equal((await verify()).stderr, 'The trail was rewritten: entry 7 is not the one that was signed.\n');
  entries = whole.slice(0, 12);
  assert.equal((await verify()).stderr, 'The trail was cut: it ends at entry 12, and entry 20 was signed.\n');

  entries = forged(whole, 5);
  heads = [{ ...(heads[0] as SignedHead), hash: entries[6]?.hash ?? '' }];
  assert.equal((await verify()).stderr, 'The signature of the head of entry 7 is wrong.\n');
  const other = generateKeyPairSync('ed25519');
  heads = [signedHead(entries[6] as Entry, other)];
  assert.match((await verify()).stderr, /^The head of entry 7 is signed with another key, ed25519:/);
  assert.equal((await verify('--key', key, '--key', auditPublicKey(other.publicKey))).status, 0);
  assert.match(
    (await verify('--key', 'x')).stderr,
    /^'x' is not a key as `andromeda admin audit key` prints it/,
  );
});

/** A trail in which an entry was changed, and every hash from there on computed again. */
function forged(entries: Entry[], from: number): Entry[] {
  let previous = '';
  return entries.map((entry) => {
    const { actor_email, hash: _, ...rest } = entry;
    const record = {
      command_id: null,
      organization_id: null,
      cluster_id: null,
      subject_user_id: null,
      ...rest,
    };
    if (entry.seq === from) record.reason = 'forged';
    previous = auditHash(previous, record as AuditRecord);
    return { ...entry, ...(entry.seq === from ? { reason: 'forged' } : {}), hash: previous, actor_email };
  });
}

test('admin audit head and key print what to keep in another place', async (t) => {
  const signed = signedHead(trail(3)[2] as Entry);
  const next = auditPublicKey(generateKeyPairSync('ed25519').publicKey);
  const { run } = await signedIn(t, {
    ...lookups,
    'GET /operator/audit/head': signed,
    'GET /operator/audit/heads': { key, other_keys: [next], heads: [signed] },
  });
  assert.equal((await run(['admin', 'audit', 'key'])).stdout, `${key}\n${next}\n`);
  assert.equal(
    (await run(['admin', 'audit', 'head'])).stdout,
    `head 3:${signed.hash}\ntime ${signed.at}\nsignature ${signed.signature}\nkey ${key}\n`,
  );
});
