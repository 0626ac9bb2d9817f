/** The walk of the README with the real clients: each command is taken from the page that `npm start` prints. */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import Database from 'better-sqlite3';
import { becomes, eventually } from '../support/app.ts';
import { noBrowser, withPage } from '../support/browser.ts';
import { startCommand } from '../support/command.ts';
import { startDemo } from '../support/demo.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { fails, finished, heard } from '../support/heard.ts';
import { limit } from '../support/limit.ts';
import { within } from '../support/within.ts';

test('sign in, add a key, log in, revoke the key, and a service that is killed and comes back', {
  skip: noBrowser,
}, async (t) => {
  using home = temporaryDirectory();
  using data = temporaryDirectory();
  const environment = {
    ...process.env,
    HOME: home.path,
    XDG_STATE_HOME: join(home.path, 'state'),
    ANDROMEDA_CREDENTIAL_STORE: 'file',
    BROWSER: 'true',
  };
  let demo = await startDemo(data.path);
  t.after(() => demo[Symbol.asyncDispose]());

  /** Starts a command line as a person would paste it. */
  const begin = (line: string) =>
    spawn('sh', ['-c', line], {
      env: environment,
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: limit(60_000),
    });
  const shell = (line: string) => finished(begin(line));
  const key = join(home.path, '.ssh/id_ed25519');
  /** Starts a command of the page as `shell` does, by function. */
  const andromeda = (line: string) => {
    const words = execFileSync('sh', ['-c', `printf '%s\\0' ${line}`], {
      env: environment,
      encoding: 'utf8',
    });
    const [npx, name, ...args] = words.split('\0').slice(0, -1);
    assert.deepEqual([npx, name], ['npx', 'andromeda']);
    return startCommand(args, { env: environment });
  };
  await shell(`mkdir -p ~/.ssh && ssh-keygen -q -t ed25519 -N '' -C ada@laptop -f ${key}`);
  const options = `-i ${key} -o IdentitiesOnly=yes -o IdentityAgent=none -o LogLevel=ERROR
    -o UserKnownHostsFile=${home.path}/known_hosts -o StrictHostKeyChecking=accept-new`;
  const sshCommand = demo.command('ssh -p').replace('ssh ', `ssh ${options.replace('\n', ' ')} `);

  // 1. auth login prints an address and a code, and says who signed in.
  const login = andromeda(demo.command('auth login'));
  const [address = '', code = ''] =
    /http:\S+user_code=(\S+)/.exec(await login.until('enter the code')) ?? assert.fail();
  await withPage(async (page) => {
    await page.goto(address);
    await page.getByLabel('Email').fill('ada@demo.example');
    await page.getByLabel('Password').fill(demo.password('ada@demo.example'));
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Approve this sign-in?' }).waitFor();
    const text = await page.locator('main').innerText();
    for (const part of ['Andromeda command line', '127.0.0.1', code]) assert.ok(text.includes(part), text);
    await page.getByRole('button', { name: 'Approve' }).click();
    await page.getByText('You can close this window').waitFor();
  });
  const signedIn = await login.result;
  assert.equal(signedIn.status, 0);
  assert.match(signedIn.screen, /Ada Lovelace/);

  // 2. GET /me prints the person.
  const me = await shell(demo.command('business GET /me'));
  assert.equal(me.status, 0, me.err);
  assert.equal(JSON.parse(me.out).user.primary_email, 'ada@demo.example');

  // 3. The key is registered.
  const added = await andromeda(demo.command('POST /me/ssh-keys')).result;
  assert.equal(added.status, 0, added.stderr);
  const { ssh_key } = JSON.parse(added.stdout);
  assert.ok((await shell(`ssh-keygen -lf ${key}.pub`)).out.includes(ssh_key.fingerprint));

  // 4. ssh-access turns ready within seconds.
  const access = async () => {
    const { stdout, stderr } = await andromeda(demo.command('ssh-access')).result;
    return stdout === '' ? { ready: false, reason: stderr } : JSON.parse(stdout);
  };
  const ready = await eventually(access, (answer) => answer.ready);
  assert.deepEqual([ready.reason, ready.username, ready.ssh_key_set_generation], ['ready', 'ada', 1]);
  assert.ok(demo.page.includes(ready.host_key_fingerprint));

  // 5. ssh logs in, prints nothing of its own, and returns the exit status.
  const who = await shell(`${sshCommand} 'id -un 2>/dev/null || true; id -u; echo $HOME | tee kept; exit 3'`);
  assert.deepEqual([who.status, who.err], [3, '']);
  if (process.getuid?.() === 0) assert.match(who.out, /^ada\n20000\n\/home\/ada$/m);

  // A second start, after kill -9, finds everything as it was.
  const entries = (operation: string) => {
    const database = new Database(join(data.path, 'andromeda.db'), { readonly: true });
    const rows = database
      .prepare('select target from audit_entries where operation = ? order by seq')
      .all(operation) as { target: string }[];
    database.close();
    return rows;
  };
  const before = entries('ssh.session.opened').length;
  const cutOff = shell(`${sshCommand} 'sleep 60'`);
  await becomes(() => entries('ssh.session.opened').length, before + 1);
  await demo.exit('SIGKILL');
  assert.equal((await cutOff).status, 255);
  const { page } = demo;
  demo = await startDemo(data.path);
  assert.equal(demo.page, page);
  await eventually(access, (answer) => answer.ready);
  assert.match((await shell(`${sshCommand} 'cat kept'`)).out, /ada/);
  const lost = entries('ssh.session.opened').at(before)?.target;
  // The login node ended with the service, the gateway did not: it reports the end when there is a service again, and once.
  await becomes(() => entries('ssh.session.closed').filter(({ target }) => target === lost).length, 1);

  // 6. Revoking the key ends the open session within seconds.
  const session = begin(`${sshCommand} 'echo in; sleep 60'`);
  const [out, ended] = [heard(session.stdout), finished(session)];
  await becomes(() => out().includes('in'), true);
  const revoked = await andromeda(demo.command('/revoke').replace('KEY_ID', ssh_key.id)).result;
  assert.equal(revoked.status, 0, revoked.stderr);
  fails(await within('the end of the session', ended), 255, /revoked/);
  assert.equal((await shell(`${sshCommand} true`)).status, 255);
  const after = await eventually(access, (answer) => answer.ssh_key_set_generation === 2);
  assert.deepEqual([after.ready, after.reason], [false, 'no_keys']);

  // Ctrl-C stops it, and it says so.
  await demo.exit('SIGINT');
  assert.match(demo.output(), /Stopped\./);
  for (const file of ['andromeda.db', 'issuer-keys.json', 'demo-passwords.json', 'keys/gateway_host_ed25519'])
    assert.equal(statSync(join(data.path, file)).mode & 0o777, 0o600, file);
});
