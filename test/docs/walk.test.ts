/** The operator's pages word by word: every command on them, in their order, on an empty machine. Those for upgrades are in test/host/upgrade.test.ts. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { parse, stringify } from 'yaml';
import { missingForBundle } from '../../scripts/build/bundle.ts';
import { writeRelease } from '../clients/release.ts';
import { eventually } from '../support/app.ts';
import { noBrowser } from '../support/browser.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { placeExecutable } from '../support/executable.ts';
import { heard } from '../support/heard.ts';
import { type Machine, noMachine, startMachine } from '../support/machine.ts';
import { newPublicKey } from '../support/ssh-keys.ts';
import { readPage } from './pages.ts';

const root = join(import.meta.dirname, '../..');
const missing = missingForBundle(root);
const skip = noMachine || noBrowser || (missing.length > 0 && `the build needs ${missing.join(', ')}`);
const password = 'correct horse battery';
const ada = 'ada@physics.example';

/** What was copied to the machine: a release, a lab file, a person's SSH key. */
async function bring(machine: Machine): Promise<void> {
  const { home } = machine;
  const program = join(home, 'andromeda-0.3.0-linux-x64');
  await placeExecutable(program);
  await machine.run('sha256sum andromeda-* > SHA256SUMS; echo "0000  not-here" >> SHA256SUMS');
  const [lab = ''] = readPage('clusters.md').settings;
  writeFileSync(join(home, 'lab.yaml'), lab);
  mkdirSync(join(home, '.ssh'), { mode: 0o700 });
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', join(home, '.ssh/id_ed25519')]);
}

/** Signs in as the page says, with the browser that the address is for. */
async function signIn(t: TestContext, machine: Machine, line: string): Promise<void> {
  const login = machine.start(line);
  t.after(() => login.kill('SIGKILL'));
  const said = heard(login.stdout, login.stderr);
  const exited = new Promise((done) => login.once('exit', done));
  const address = await eventually(
    async () => /https?:\S+user_code=\S+/.exec(said())?.[0] ?? said(),
    (found) => /user_code/.test(found),
  );
  const approve = join(root, 'test/support/approve.ts');
  const browser = await machine.run(`${process.execPath} ${approve} '${address}' ${ada} '${password}'`);
  assert.equal(browser.status, 0, browser.stderr);
  assert.equal(await exited, 0, said());
  assert.match(said(), /Signed in as /);
}

test('install, sign in, clusters, backup, restore', { skip }, async (t) => {
  using directory = temporaryDirectory();
  await using machine = await startMachine(directory.path);
  await bring(machine);
  const journal = async () => (await machine.run('cat /run/journal')).stdout;
  const ready = () => machine.run('curl -sf --retry 20 --retry-connrefused http://127.0.0.1:8080/readyz');

  /** What each command needs typed, or answers, where that is not nothing and status 0. */
  const inputs: [RegExp, string][] = [[/bootstrap|person password/, `${password}\n`]];
  const elsewhere = [/^journalctl/, /^andromeda serve/, /^andromeda auth login/];
  const follow = async (t: TestContext, commands: string[]) => {
    for (const line of commands) {
      if (elsewhere.some((one) => one.test(line))) continue;
      await t.test(line, async () => {
        // The first one by itself would be under way at some moment.
        if (line.endsWith('andromeda backup')) await eventually(journal, (text) => /backup\.made/.test(text));
        const input = inputs.find(([command]) => command.test(line))?.[1];
        const { status, stdout, stderr } = await machine.run(line, input);
        assert.equal(status, 0, `${stdout}${stderr}\n${await journal()}`);
        if (/^systemctl.* (start|restart|--now)/.test(line))
          assert.equal((await ready()).status, 0, await journal());
      });
    }
  };

  const install = readPage('install.md').commands;
  const login = install.findIndex((line) => line.startsWith('andromeda auth login'));
  const steps = install.slice(0, login);
  assert.ok(steps.length >= 8);
  await t.test('Install', (t) => follow(t, steps));
  await t.test('Install: what it made', async () => {
    const { stdout } = await machine.run(
      'stat -c "%U:%G %a %n" /etc/andromeda/andromeda.yaml /var/lib/andromeda/*',
    );
    assert.match(stdout, /^root:andromeda 640 \/etc\/andromeda\/andromeda\.yaml\n/);
    assert.match(stdout, /\nandromeda:andromeda 600 \/var\/lib\/andromeda\/andromeda\.db\n/);
    for (const account of ['andromeda', 'andromeda-gateway'])
      assert.match((await machine.run(`getent passwd ${account}`)).stdout, /:\/usr\/sbin\/nologin$/m);
    const unit = 'systemd-analyze verify --man=no /etc/systemd/system/andromeda*';
    assert.deepEqual(await machine.run(unit), { status: 0, stdout: '', stderr: '' });
    const again = await machine.run('andromeda service install');
    assert.match(
      again.stdout,
      /^(write \/etc\/systemd\/system\/andromeda\S+: done\n){3}The configuration that was there stays\./,
    );
    assert.deepEqual(await machine.run('runuser -u andromeda -- andromeda service install'), {
      status: 1,
      stdout: '',
      stderr: 'andromeda: This changes the system; run it as root, or with --dry-run to see.\n',
    });
    const image = join(machine.home, 'image');
    await machine.run('mkdir -p image/etc image/var/lib');
    assert.deepEqual(await machine.run('andromeda service install --user gate --root image'), {
      status: 0,
      stdout: `copy the program to ${image}/usr/local/bin/andromeda: done
make the system account gate, which nobody can log in to: done
make the system account andromeda-gateway, which nobody can log in to: done
make the data directory ${image}/var/lib/andromeda: done
write a configuration to begin with to ${image}/etc/andromeda/andromeda.yaml: done
write ${image}/etc/systemd/system/andromeda.service: done
write ${image}/etc/systemd/system/andromeda-gateway.socket: done
write ${image}/etc/systemd/system/andromeda-gateway@.service: done

Next:

  1. Say in /etc/andromeda/andromeda.yaml how people reach it.
  2. Make the first operator:   andromeda admin bootstrap --config /etc/andromeda/andromeda.yaml --email YOU@EXAMPLE.ORG
  3. Start it:                  systemctl enable --now andromeda    (systemd does not run here: on the machine it is for)
  4. See that it serves:        systemctl status andromeda; journalctl -u andromeda
`,
      stderr: '',
    });
    const served = await journal();
    assert.match(served, /"serve\.ready"/);
    assert.match(served, /"fastCiphers":true/);
  });
  await t.test('Sign in', () => signIn(t, machine, install[login] ?? ''));
  await t.test('Identity provider: the built-in one', (t) =>
    follow(
      t,
      readPage('identity-provider.md').commands.filter((line) => / admin |call/.test(line)),
    ),
  );
  const content = Buffer.from('a client');
  writeRelease(machine.home, '0.3.0', [{ platform: 'linux-x64', name: 'andromeda-linux-x64', content }]);
  await t.test('Sign in: the lab', (t) => follow(t, install.slice(login + 1)));
  // As clusters.md says of a simulated cluster where the service is not root.
  await machine.run(`echo 'clusters: { unsafeSimulatedLogins: true }' >> /etc/andromeda/andromeda.yaml
    systemctl restart andromeda`);
  assert.equal((await ready()).status, 0, await journal());
  await t.test('Clusters', (t) => follow(t, readPage('clusters.md').commands));

  const hostKey = async () =>
    (await machine.run('cat /var/lib/andromeda/keys/gateway_host_ed25519.pub')).stdout;
  const before = await hostKey();
  const { commands: backup, settings: backupSettings } = readPage('operations.md', 'Backup and restore');
  const newMachine = backup.indexOf('chown -R andromeda: /var/backups/andromeda') - 1;
  const [byItself = ''] = backupSettings;
  await machine.run(`printf '%s\\n# ours\\n' '${byItself}' >> /etc/andromeda/andromeda.yaml`);
  // A file outside of the data directory that a start needs, as those of TLS are.
  await machine.run(`install -d -m 0750 -g andromeda /etc/andromeda/files
    install -m 0640 -g andromeda lab.yaml /etc/andromeda/files/seed.yaml
    echo 'seed: files/seed.yaml' >> /etc/andromeda/andromeda.yaml`);
  await t.test('Backup and restore', (t) => follow(t, backup.slice(0, newMachine)));
  await t.test('Backup and restore: everything is as before', async () => {
    assert.equal(await hostKey(), before);
    const { status, stderr } = await machine.run('andromeda wait key && andromeda ssh alpha true');
    assert.equal(status, 0, stderr);
    const { stdout } = await machine.run('stat -c "%U %a" /var/backups/andromeda/*');
    // The one that was named, and one that was kept.
    assert.match(stdout, /^(andromeda 600\n){2,}$/);
    const kept = await machine.run('ls -d /var/lib/andromeda/before-restore-*');
    assert.equal(kept.stdout.trim().split('\n').length, 1);
  });
  await t.test('Backup and restore: on a new machine', async (t) => {
    await machine.run('systemctl stop andromeda; userdel andromeda');
    await machine.run('rm -rf /etc/andromeda /etc/systemd/system/andromeda* /var/lib/andromeda');
    await machine.run('useradd --system other');
    // As it comes from the old machine, where numbers of accounts are others.
    await machine.run('chown -R root: /var/backups/andromeda; chmod -R go= /var/backups/andromeda');
    // What follows needs a PostgreSQL: test/host/migrate.test.ts.
    const shared = backup.findIndex((line) => line.startsWith('andromeda migrate')) - 1;
    await follow(t, backup.slice(newMachine, shared));
    assert.equal(await hostKey(), before);
    assert.match((await machine.run('cat /etc/andromeda/andromeda.yaml')).stdout, /\n# ours\n/);
    const { status, stderr } = await machine.run('andromeda wait key && andromeda ssh alpha true');
    assert.equal(status, 0, stderr);
  });
  await t.test('TLS and addresses', async (t) => {
    const page = readPage('configuration.md', 'TLS and addresses');
    const name = 'gpu.physics.example';
    await machine.run(`echo '127.0.0.1 ${name}' >> /etc/hosts
      openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=${name} -addext subjectAltName=DNS:${name} \\
        -keyout key.pem -out chain.pem`);
    await follow(t, page.commands);
    writeFileSync(join(machine.home, 'tls.yaml'), page.settings[0] ?? '');
    await machine.run('cat tls.yaml > /etc/andromeda/andromeda.yaml; systemctl restart andromeda');
    const url = `https://${name}:8443`;
    const { status, stderr } = await machine.run(
      `curl -sf --retry 20 --retry-connrefused --cacert chain.pem ${url}/readyz`,
    );
    assert.equal(status, 0, `${stderr}${await journal()}`);
    const distrusted = await machine.run(`andromeda auth login --url ${url}`);
    assert.match(distrusted.stderr, /NODE_EXTRA_CA_CERTS names one to trust/);
  });
  assert.doesNotMatch(await journal(), /"level":"error"/);
});

test('a lab file that lies anywhere may have the Slurm section of the page, with its management key', async () => {
  using directory = temporaryDirectory();
  const { readLab } = await import('../../src/service/config/lab-file.ts');
  const { clusterPaths } = await import('../../src/domain/clusters/lab-paths.ts');
  const [lab = ''] = readPage('clusters.md').settings;
  const [slurm = ''] = readPage('clusters.md', 'Slurm').settings;
  const file = join(directory.path, 'lab.yaml');
  writeFileSync(
    file,
    stringify({ ...parse(lab), ...parse(slurm.replaceAll('ssh-ed25519 …', newPublicKey())) }),
  );
  const { clusters = [] } = readLab(file);
  const paths = clusters.flatMap(clusterPaths).map(({ path }) => path);
  // Below the directory of the configuration, which is where labs may name files.
  assert.deepEqual(paths, ['/etc/andromeda/keys/manage']);
  const [{ rollout, trialNode } = {}] = clusters.flatMap((cluster) => cluster.slurm ?? []);
  assert.deepEqual([rollout, trialNode], ['live', 'node7']);
});

test('the settings on the pages are ones that the service takes', async () => {
  using directory = temporaryDirectory();
  const { readConfig } = await import('../../src/service/config/index.ts');
  mkdirSync(join(directory.path, 'tls'));
  for (const name of ['chain.pem', 'key.pem']) writeFileSync(join(directory.path, 'tls', name), 'x');
  const file = join(directory.path, 'andromeda.yaml');
  const settings = [
    readPage('configuration.md', 'TLS and addresses'),
    readPage('identity-provider.md'),
    readPage('operations.md'),
    readPage('people.md'),
  ]
    .flatMap((page) => page.settings)
    .filter((text) => !text.startsWith('organizations:')); // Of a lab file.
  assert.equal(settings.length, 15);
  for (const text of settings) {
    writeFileSync(file, text);
    assert.ok(readConfig(file));
  }
});
