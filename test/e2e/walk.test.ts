/** The walk of the README with the real clients: each command is taken from the page that `npm start` prints. */
import assert from 'node:assert/strict';
import { execFile, execFileSync, spawn } from 'node:child_process';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import pty from '@lydell/node-pty';
import Database from 'better-sqlite3';
import { eventually } from '../support/app.ts';
import { noBrowser, withPage } from '../support/browser.ts';
import { startCommand } from '../support/command.ts';
import { startDemo } from '../support/demo.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { limit } from '../support/limit.ts';
import { within } from '../support/within.ts';

test('sign in, add a key, log in, copy a file, revoke the key', { skip: noBrowser }, async (t) => {
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

  /** Runs a command line as a person would paste it. */
  const shell = (line: string) =>
    new Promise<{ code: number; stdout: string; stderr: string }>((done) => {
      execFile('sh', ['-c', line], { env: environment, timeout: limit(30_000) }, (error, stdout, stderr) =>
        done({ code: error ? Number(error.code ?? -1) : 0, stdout, stderr }),
      );
    });
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
  const options = [
    `-i ${key}`,
    '-o IdentitiesOnly=yes',
    '-o IdentityAgent=none',
    `-o UserKnownHostsFile=${home.path}/known_hosts`,
    '-o StrictHostKeyChecking=accept-new',
    '-o LogLevel=ERROR',
  ].join(' ');
  const login = (command: string) => command.replace('ssh ', `ssh ${options} `);
  const sshCommand = demo.command('ssh -p');
  const [, port = '', target = ''] = /ssh -p (\d+) (\S+)/.exec(sshCommand) ?? [];

  await t.test('1. auth login prints an address and a code, and says who signed in', async () => {
    const command = andromeda(demo.command('auth login'));
    const [address = ''] = /http:\S+user_code=\S+/.exec(await command.until('enter the code')) ?? [];
    const [, code = ''] = /user_code=(\S+)/.exec(address) ?? [];
    await withPage(async (page) => {
      await page.goto(address);
      await page.getByLabel('Email').fill('ada@demo.example');
      await page.getByLabel('Password').fill(demo.password('ada@demo.example'));
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByRole('heading', { name: 'Approve this sign-in?' }).waitFor();
      const text = await page.locator('main').innerText();
      assert.match(text, /Andromeda command line/);
      assert.match(text, /127\.0\.0\.1/);
      assert.ok(text.includes(code));
      await page.getByRole('button', { name: 'Approve' }).click();
      await page.getByText('You can close this window').waitFor();
    });
    const { status, screen } = await command.result;
    assert.equal(status, 0);
    assert.match(screen, /Ada Lovelace/);
  });

  await t.test('2. GET /me prints the person', async () => {
    const { code, stdout, stderr } = await shell(demo.command('business GET /me'));
    assert.equal(code, 0, stderr);
    assert.equal(JSON.parse(stdout).user.primary_email, 'ada@demo.example');
  });

  let keyId = '';
  await t.test('3. the key is registered', async () => {
    const { status, stdout, stderr } = await andromeda(demo.command('POST /me/ssh-keys')).result;
    assert.equal(status, 0, stderr);
    const { ssh_key } = JSON.parse(stdout);
    keyId = ssh_key.id;
    const printed = await shell(`ssh-keygen -lf ${key}.pub`);
    assert.ok(printed.stdout.includes(ssh_key.fingerprint));
  });

  const access = async () => {
    const { stdout, stderr } = await andromeda(demo.command('ssh-access')).result;
    return stdout === '' ? { ready: false, reason: stderr } : JSON.parse(stdout);
  };
  await t.test('4. ssh-access turns ready within seconds', async () => {
    const answer = await eventually(access, ({ ready }) => ready);
    assert.equal(answer.reason, 'ready');
    assert.equal(answer.username, 'ada');
    assert.equal(answer.ssh_key_set_generation, 1);
    assert.ok(demo.page.includes(answer.host_key_fingerprint));
  });

  await t.test('5. ssh returns the exit status, scp copies, the terminal resizes', async () => {
    const exit = await shell(login(`${sshCommand} 'exit 3'`));
    assert.equal(exit.code, 3, exit.stderr);
    const who = await shell(login(`${sshCommand} 'id -un 2>/dev/null || true; id -u; echo $HOME'`));
    assert.equal(who.code, 0);
    assert.equal(who.stderr, '', 'a good login prints nothing on stderr');
    if (process.getuid?.() === 0) assert.match(who.stdout, /^ada\n20000\n\/home\/ada$/m);

    const file = join(home.path, 'data.bin');
    writeFileSync(file, Buffer.alloc(300_000, 'andromeda'));
    const scp = `scp ${options} -P ${port}`;
    const up = await shell(`${scp} ${file} ${target}:copied.bin`);
    assert.equal(up.code, 0, up.stderr);
    const down = await shell(`${scp} ${target}:copied.bin ${file}.back`);
    assert.equal(down.code, 0, down.stderr);
    assert.ok(readFileSync(file).equals(readFileSync(`${file}.back`)));

    const terminal = pty.spawn('sh', ['-c', login(sshCommand)], { cols: 91, rows: 23, env: environment });
    let screen = '';
    terminal.onData((part) => {
      screen += part;
    });
    const sizeIs = (size: string) =>
      eventually(
        async () => {
          terminal.write('stty size\r');
          return screen;
        },
        (text) => text.includes(size),
      );
    await sizeIs('23 91');
    terminal.resize(100, 40);
    await sizeIs('40 100');
    const closed = new Promise<{ exitCode: number }>((done) => terminal.onExit(done));
    terminal.write('exit 4\r');
    assert.equal((await closed).exitCode, 4);
  });

  await t.test('a second start, after kill -9, finds everything as it was', async () => {
    const entries = (operation: string) => {
      const database = new Database(join(data.path, 'andromeda.db'), { readonly: true });
      const rows = database
        .prepare('select target from audit_entries where operation = ? order by seq')
        .all(operation) as { target: string }[];
      database.close();
      return rows;
    };
    const before = entries('ssh.session.opened').length;
    const cutOff = shell(login(`${sshCommand} 'sleep 60'`));
    const opened = await eventually(
      async () => entries('ssh.session.opened'),
      ({ length }) => length > before,
    );
    await demo.exit('SIGKILL');
    assert.equal((await cutOff).code, 255);
    const { page } = demo;
    demo = await startDemo(data.path);
    assert.equal(demo.page, page);
    await eventually(access, ({ ready }) => ready);
    const file = await shell(login(`${sshCommand} 'wc -c < copied.bin'`));
    assert.equal(file.stdout.trim(), '300000', file.stderr);
    const lost = opened.at(-1)?.target;
    // The login node ended with the service, the gateway did not: it reports the end when there is a service again.
    const ends = await eventually(
      async () => entries('ssh.session.closed').filter(({ target }) => target === lost),
      ({ length }) => length > 0,
    );
    assert.equal(ends.length, 1, 'the trail says once that it ended');
  });

  await t.test('6. revoking the key ends the open session within seconds', async () => {
    const session = spawn('sh', ['-c', login(`${sshCommand} 'echo in; sleep 60'`)], { env: environment });
    let out = '';
    let complaint = '';
    session.stdout.setEncoding('utf8').on('data', (part) => {
      out += part;
    });
    session.stderr.setEncoding('utf8').on('data', (part) => {
      complaint += part;
    });
    const exited = new Promise<number>((done) => session.on('exit', (code) => done(code ?? -1)));
    await eventually(
      async () => out,
      (text) => text.includes('in'),
    );
    const revoked = await andromeda(demo.command('/revoke').replace('KEY_ID', keyId)).result;
    assert.equal(revoked.status, 0, revoked.stderr);
    assert.equal(await within('the end of the session', exited), 255);
    assert.match(complaint, /revoked/);
    const again = await shell(login(`${sshCommand} true`));
    assert.equal(again.code, 255);
    const after = await eventually(access, (answer) => answer.ssh_key_set_generation === 2);
    assert.equal(after.ready, false);
    assert.equal(after.reason, 'no_keys');
  });

  await t.test('Ctrl-C stops it within two seconds and says so', async () => {
    const { ms } = await demo.exit('SIGINT');
    assert.match(demo.output(), /Stopped\./);
    t.diagnostic(`stopped after ${Math.round(ms)} ms`);
    for (const file of [
      'andromeda.db',
      'issuer-keys.json',
      'demo-passwords.json',
      'keys/gateway_host_ed25519',
    ]) {
      assert.equal(statSync(join(data.path, file)).mode & 0o777, 0o600, file);
    }
  });
});
