/** The second opinion itself: it finds what it is there for, and lets the rest be. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startAnswers } from '../support/answers.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { type Exchange, judge, watchApis } from '../support/judge.ts';
import { askJudge, startJudge } from '../support/shared-judge.ts';

const json = 'application/json; charset=utf-8';
const path = '/me/ssh-keys';
const keys: Exchange = {
  ...{ method: 'GET', url: path, headers: {}, body: '', status: 200, replyType: json },
  reply: '{"keys":[],"generation":0}',
};
const register: Exchange = {
  ...{ method: 'POST', url: path, body: '{"public_key":"x"}', status: 409, replyType: json },
  headers: { 'content-type': json, 'idempotency-key': 'k', 'audit-reason': 'r' },
  reply: '{"code":"invalid_state","error":"A sentence.","retryable":false}',
};

test('what conforms is left alone, and so is an address that no document has', async () => {
  assert.deepEqual(await judge('business', keys), []);
  assert.deepEqual(await judge('business', register), []);
  assert.deepEqual(
    await judge('business', { ...keys, url: '/docs', replyType: 'text/html', reply: '<html>' }),
    [],
  );
});

test('a reply that the document does not promise is found, whatever its status', async () => {
  const short = await judge('business', { ...keys, reply: '{"keys":[]}' });
  assert.match(short.join(), /GET \/me\/ssh-keys → 200: .*generation/);
  const bare = await judge('business', { ...register, reply: '{"message":"?"}' });
  assert.match(bare.join(), /POST \/me\/ssh-keys → 409: .*code/);
});

test('a request that is none of the document’s may be refused, and must not be carried out', async () => {
  const wrong = { ...keys, url: `${path}?surprise=1` };
  assert.match((await judge('business', wrong)).join(), /surprise/);
  const refusal = { ...register, body: '{}', status: 400 };
  assert.deepEqual(await judge('business', refusal), []);
});

test('the judge that all files of a run share says the same; where it is not there, nothing is fine', async () => {
  using directory = temporaryDirectory();
  const ask = (exchange: Exchange) => askJudge(directory.path, 'business', exchange);
  {
    await using _ = await startJudge(directory.path, judge);
    assert.deepEqual(await Promise.all([ask(keys), ask(register)]), [[], []]);
    assert.match((await ask({ ...keys, reply: '{"keys":["\u2028"]}' })).join(), /→ 200: .*generation/);
  }
  assert.match((await ask(keys)).join(), /went away/);
});

test('a service that answers otherwise than its document fails the test that started it', async () => {
  await using server = await startAnswers(() => [200, '{"keys":[]}', { 'content-type': json }]);
  const watch = watchApis({ business: Number(new URL(server.url).port), platform: 0 });
  await (await fetch(`${server.url}${path}`)).text();
  await assert.rejects(watch.end(), /not what openapi.*generation/s);
});
