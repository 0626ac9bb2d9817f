/** docs/people.md word by word: the commands for a person who leaves and for personal data, in their order, and what each proves. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMachine, sessionAt } from '../cli/harness.ts';
import { becomes, eventually, startTestApp } from '../support/app.ts';
import { sshPerson } from '../support/ssh-person.ts';
import { readPage } from './pages.ts';

const leaving = readPage('people.md', 'When a person leaves');
const personalData = readPage('people.md', 'Personal data');

const bob = 'bob@physics.example';

/** The arguments of a line of shell that uses single quotes only. */
function argumentsOf(line: string): string[] {
  return [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '').slice(1);
}

/** What a command on the page has to print, by how it begins. */
const expected: [start: string, found: RegExp, absent?: RegExp][] = [
  ['andromeda admin person deactivate', /bob@physics\.example .* deactivated/],
  ['andromeda admin person list', /bob@physics\.example .* deactivated +- /],
  ['andromeda members list', /ada@physics\.example/, /bob@/],
  ['andromeda admin grant list', /^$/, /bob@/],
  ['andromeda admin session list', /^$/, /bob@/],
  ['andromeda admin cluster list', /^alpha .* converged /m],
  [
    'andromeda admin audit --person',
    /"operatorDeactivatePerson"[\s\S]*"ssh\.session\.closed"[\s\S]*"refused: access_removed"/,
  ],
  ['andromeda admin audit verify', /^entries \d+\nhead \d+:sha256:/],
  ['andromeda admin person reactivate', /bob@physics\.example .* active/],
  ['andromeda admin organization sign-in', /^physics /m],
  ['andromeda admin person exempt', /bob@physics\.example .* active/],
];

test('every command for a person who leaves does what docs/people.md says of it', async (t) => {
  await using service = await startTestApp();
  using person = await sshPerson(service, 'bob');
  // A busy machine may take longer to start a login node than the gateway waits for it.
  await becomes(async () => (await person.ssh([person.target, 'true'])).status, 0);
  const session = person.start([person.target, 'echo up; exec sleep 60']);
  await session.said;
  const token = await service.issuer.token('bob');
  const machine = await createMachine(t);
  const accessToken = await service.issuer.token('root');
  await machine.writeProfile([sessionAt(service.businessUrl, { accessToken })]);

  const { commands } = leaving;
  assert.equal(commands.length, expected.length);
  for (const [index, line] of commands.entries()) {
    const [start = '', found = /^$/, absent] = expected[index] ?? [];
    assert.ok(line.startsWith(start), line);
    const run = () => machine.run(argumentsOf(line));
    const { status, stdout, stderr } = await (start.includes('cluster list')
      ? eventually(run, (result) => found.test(result.stdout))
      : run());
    assert.equal(status, 0, `${line}: ${stderr}`);
    assert.match(stdout, found, line);
    if (absent) assert.doesNotMatch(stdout, absent, line);
    if (!line.includes('deactivate')) continue;
    assert.match((await session.ended).err, /was revoked|was removed/);
    assert.match((await person.ssh([person.target, 'true'])).err, /Permission denied/);
    assert.equal((await service.business('/me', { token })).status, 401);
  }
  assert.equal((await service.business('/me', { token })).status, 401, 'a token from before');
  service.advance(61_000);
  const anew = await service.business('/me', { token: await service.issuer.token('bob', {}, 500) });
  assert.deepEqual([anew.status, anew.body.memberships], [200, []], 'back');
  assert.equal(bob, anew.body.user.primary_email);
});

test('every command for personal data does what docs/people.md says, in the order of the page', async (t) => {
  await using service = await startTestApp();
  for (const as of ['ada', 'bob']) await service.business('/me', { as });
  const machine = await createMachine(t);
  const accessToken = await service.issuer.token('root');
  await machine.writeProfile([sessionAt(service.businessUrl, { accessToken })]);
  const { commands } = personalData;
  assert.equal(commands.length, 6);
  for (const line of commands) {
    const { status, stdout, stderr } = await machine.run(argumentsOf(line));
    assert.equal(status, 0, `${line}: ${stderr}`);
    if (line.includes('person erase')) assert.match(stdout, /erased-\w+@andromeda\.invalid .*Erased person/);
    if (line.includes('person identities')) assert.match(stdout, /subject-ada/);
  }
  assert.equal((await service.business('/me', { as: 'ada' })).status, 401, 'unbound');
});
