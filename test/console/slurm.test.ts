/** The Slurm configuration in an editor: typed, checked, saved, tried out, put back; alone and with others, and when things break. */
import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { setSimulated } from '../platform/support.ts';
import { alpha, becomes, eventually, physics } from '../support/app.ts';
import { type CookieBrowser, password, signIn } from './harness.ts';
import { checkPage, show, test, useConsole } from './page.ts';

const evil = '<img src=x onerror="window.hit=1">{{7*7}}';
const lab = {
  ...physics,
  organizations: physics.organizations?.map((one) => ({
    ...one,
    members: one.members?.map((member) =>
      member.email === 'bob@physics.example'
        ? { ...member, permissions: ['clusters.read' as const, 'clusters.configure' as const] }
        : member,
    ),
  })),
} as typeof physics;
const address = `/clusters/${alpha}/slurm`;

/** Somebody else who changes it. */
let bob: CookieBrowser;
let of: (rest?: string) => string;
const site = useConsole({ lab }, async (app) => {
  bob = await signIn(app, 'bob');
  const { memberships } = await bob.ask('business/me');
  const org = memberships[0].org_id;
  of = (rest = '') => `platform/clusters/${alpha}/scheduler-configuration${rest}?businessOrgId=${org}`;
});
async function setByBob(configuration: object, reason = 'by Bob'): Promise<void> {
  await bob.ask(of(), { method: 'PUT', body: configuration, reason });
}

const stored = async (): Promise<Record<string, string>> => bob.ask(of());
const versions = async (): Promise<{ generation: number; reason: string; author: { email: string } }[]> =>
  (await bob.ask(of('/versions'))).items;
const newest = async () => {
  const [version] = await versions();
  assert.ok(version);
  return version;
};

function editorOf(page: Page) {
  return page.getByRole('textbox', { name: 'Slurm configuration of alpha, as YAML' });
}

/** Waits until this is somewhere in the text of the editor. */
const untilSays = (page: Page, part: string) =>
  eventually(
    () => editorOf(page).inputValue(),
    (text) => text.includes(part),
  );

/** Puts a text into the editor as somebody who pastes it over all that is there. */
async function write(page: Page, text: string): Promise<void> {
  await editorOf(page).click();
  await page.keyboard.press('Control+a');
  await page.keyboard.insertText(text);
}

async function save(page: Page, reason: string): Promise<void> {
  await page.getByText('It is tested on the cluster first').waitFor();
  await page.getByLabel('Reason').fill(reason);
  await page.getByRole('button', { name: 'Save and test' }).click();
}

const inForce = (page: Page, number: number) =>
  page.locator('.sentence', { hasText: `Version ${number} is active` }).waitFor();

test('with the keyboard alone a configuration is found, changed with a reason, and seen to come into force', () =>
  site.as('ada', async (page) => {
    await page.keyboard.press('Control+k');
    await page.keyboard.type('slurm alpha');
    await page.getByRole('link', { name: 'Slurm configuration of alpha' }).waitFor();
    await page.keyboard.press('Enter');
    await page.getByText('No configuration yet').waitFor();
    const isIn = () => page.evaluate('document.activeElement?.matches("textarea")');
    while (!(await isIn())) await page.keyboard.press('Tab');
    // Keys of the page are letters here.
    await page.keyboard.type('slurmExtraConfig: MaxArraySize=2000 # ?/');
    await page.getByText('Restarts: login nodes, then Slurm controller').waitFor();
    await page.keyboard.press('Tab');
    assert.ok(!(await isIn()), 'Tab leaves the editor');
    await page.getByLabel('Reason').focus();
    await page.keyboard.insertText(`Longer arrays ${evil}`);
    await page.keyboard.press('Enter');
    await inForce(page, 1);
    await page.getByText('set by ada@physics.example').waitFor();
    await page.getByRole('cell', { name: `Longer arrays ${evil}` }).waitFor();
    assert.deepEqual(await stored(), { slurmExtraConfig: 'MaxArraySize=2000' });
    const version = await newest();
    assert.deepEqual(
      [version.author.email, version.reason],
      ['ada@physics.example', `Longer arrays ${evil}`],
    );
  }));

test('what is wrong is said at its line, and is not saved; hostile text is text', () =>
  site.again('ada', async (page) => {
    await show(page, address);
    for (const [text, line, message] of [
      ['slurmExtraConfig: [1', 1, 'Flow sequence in block collection'],
      ['slurmExtraConfig: a\n---\nx: 1', 2, 'A second document begins here'],
      ['prolog:\n  "50-check.sh": echo', 2, 'a script starts with "#!"'],
      ['controllerEtc: { slurm.conf: x }', 1, 'is made from the other fields'],
      [`prolog: { ${JSON.stringify(evil)}: x }`, 1, evil.slice(0, 12)],
    ] as const) {
      await write(page, text);
      const fault = page.getByRole('listitem').filter({ hasText: message }).first();
      await fault.waitFor();
      await fault.getByRole('button', { name: `Line ${line}` }).click();
      assert.equal(await page.evaluate('getSelection().toString()'), text.split('\n')[line - 1]);
    }
    for (const [text, message] of [
      ['gresConf: a\nslurmExtra: x', 'The field slurmExtra of the body is not known'],
      ['slurmExtraConfig: 5', 'The field slurmExtraConfig of the body must be string'],
      ['prolog: { a.sh: [] }', 'The field prolog.a.sh of the body must be string'],
      ['- x', 'The body must be object'],
      ['prolog: &a { a.sh: x }\nepilog: *a', 'The body must be object'],
    ] as const) {
      await write(page, text);
      await page.getByText(message).waitFor();
    }
    await page.getByText('Fix the problems above to save').waitFor();
    assert.ok(await page.getByRole('button', { name: 'Save and test' }).isDisabled());
    await checkPage(page, address);
    const text = `slurmExtraConfig: |\n  # ${evil} \u202e\u0007 </style><script>hit=1</script>\n  MaxArraySize=2001\n`;
    await write(page, text);
    await save(page, 'hostile');
    await inForce(page, 2);
    assert.equal(await page.evaluate('window.hit'), undefined);
    assert.equal(await page.locator('img[src]').count(), 0);
    await untilSays(page, '\\u202e');
    await page.getByRole('button', { name: 'View version 2' }).click();
    await page.getByRole('dialog').getByText('MaxArraySize=2000').waitFor();
    await checkPage(page, `${address} (dialog)`);
    await page.keyboard.press('Escape');
  }));

test('a configuration that Slurm does not start with is followed to its refusal, and one of before is set again', async () => {
  await setByBob({ slurmPartitions: 'PartitionName=gpu Nodes=alpha-[1-2] Default=YES' }, 'for the course');
  await setSimulated(site.app.test, alpha, {
    runningJobs: [{ id: '7', user: 'bob', name: 'train', machines: ['alpha-1'] }],
  });
  await site.again('ada', async (page) => {
    await show(page, address);
    await inForce(page, 3);
    await write(
      page,
      'slurmPartitions: PartitionName=gpu2 Nodes=alpha-[1-9]\ncomputeS6Packages: apt-get install x\n',
    );
    await page
      .getByText('Restarts: login nodes, then Slurm controller, then compute nodes one at a time')
      .waitFor();
    await page.getByText('1 running job ends.').waitFor();
    await page.getByText('The jobs in gpu end').waitFor();
    await page.getByLabel('Show changes').check();
    await page.getByRole('region', { name: 'Changes' }).getByRole('deletion').first().waitFor();
    await checkPage(page, `${address} (difference)`);
    await save(page, 'nine nodes');
    await page.getByText('was tested and rejected; version 3 stays active').waitFor();
    await page.getByText('Invalid node name alpha-3 in partition gpu2').first().waitFor();
    await checkPage(page, `${address} (refused)`);
    await page.getByRole('button', { name: 'View version 3' }).click();
    await page.getByRole('button', { name: 'Open in the editor' }).click();
    await page.getByText('Changed from version 4, not saved.').waitFor();
    assert.equal(await page.getByLabel('Reason').inputValue(), 'Restores version 3');
    await page.getByText('It is tested on the cluster first').waitFor();
    await page.getByRole('button', { name: 'Save and test' }).click();
    await inForce(page, 5);
    assert.equal((await newest()).reason, 'Restores version 3');
  });
});

test('two people at once: one saves after the other, with the difference in sight', async () => {
  await setByBob({ slurmExtraConfig: 'A=1', gresConf: 'AutoDetect=nvml' });
  await site.again('ada', async (page) => {
    await show(page, address);
    await untilSays(page, 'AutoDetect=nvml');
    const base = (await newest()).generation;
    await write(page, 'slurmExtraConfig: A=ada\ngresConf: AutoDetect=nvml\n');
    await page.getByText(`Changed from version ${base}, not saved.`).waitFor();
    await setByBob({ slurmExtraConfig: 'A=1', gresConf: 'AutoDetect=off' }, evil);
    await page.getByText('Another person saved in the meantime').waitFor();
    await page.getByRole('alert').getByText(`by bob@physics.example: “${evil}”`).waitFor();
    await checkPage(page, `${address} (conflict)`);
    const changes = page.getByRole('region', { name: 'Changes' });
    await changes.getByRole('deletion').filter({ hasText: 'AutoDetect=off' }).waitFor();
    await page.getByRole('button', { name: 'Keep mine' }).click();
    await save(page, 'mine');
    await inForce(page, base + 2);
    assert.deepEqual(await stored(), { slurmExtraConfig: 'A=ada', gresConf: 'AutoDetect=nvml' });

    // The news of it is late: the save is refused, and nothing is lost.
    const { promise: isLate, resolve: arrive } = Promise.withResolvers<void>();
    await page.route('**/scheduler-configuration?*', async (route) => {
      if (route.request().method() === 'GET') await isLate;
      await route.continue();
    });
    await write(page, 'slurmExtraConfig: A=mine\n');
    await page.getByText('It is tested on the cluster first').waitFor();
    await page.getByLabel('Reason').fill('mine');
    await setByBob({ slurmExtraConfig: 'A=bob' });
    await page.getByRole('button', { name: 'Save and test' }).click();
    arrive();
    await page.getByText('Another person saved in the meantime').waitFor();
    await untilSays(page, 'A=mine');
    assert.deepEqual(await stored(), { slurmExtraConfig: 'A=bob' });
    await page.getByRole('button', { name: 'Use theirs' }).click();
    await untilSays(page, 'A=bob');
    await page.getByRole('button', { name: 'Restore the previous text' }).click();
    await untilSays(page, 'A=mine');
    await save(page, 'mine, after I have seen theirs');
    await eventually(stored, (one) => one['slurmExtraConfig'] === 'A=mine');
  });
});

test('a reload, a session that ends and a connection that drops lose nothing, and save once', async () => {
  await setByBob({ slurmExtraConfig: 'A=1' });
  await site.again('ada', async (page) => {
    await page.goto(site.app.url + address);
    await untilSays(page, 'A=1');
    await write(page, 'slurmExtraConfig: A=typed\n');
    await page.reload();
    await untilSays(page, 'A=typed');
    await page.getByText('Kept in this tab').waitFor();
    await page.getByLabel('Reason').fill('typed before');
    await editorOf(page).click();
    await page.keyboard.press('Control+End');
    await page.keyboard.insertText('gresConf: last words\n');
    await page.evaluate(`(async () => {
      const headers = { 'X-Andromeda-Console': 'active' };
      const { sessions } = await (await fetch('/sessions', { headers })).json();
      const { id } = sessions.find(({ current }) => current);
      await fetch('/sessions/' + id + '/end', { method: 'POST', headers });
    })()`);
    await page.getByText('Your session has ended').waitFor();
    await page.getByRole('link', { name: 'Sign in' }).click();
    await page.getByLabel('Password').or(editorOf(page)).first().waitFor();
    if (await page.getByLabel('Password').isVisible()) {
      await page.getByLabel('Email').fill('ada@physics.example');
      await page.getByLabel('Password').fill(password);
      await page.getByRole('button', { name: 'Sign in' }).click();
    }
    await untilSays(page, 'last words');
    assert.equal(await page.getByLabel('Reason').inputValue(), 'typed before');

    // The change arrives, and its answer does not.
    const before = (await versions()).length;
    const keys: (string | undefined)[] = [];
    await page.route('**/scheduler-configuration?*', async (route) => {
      const request = route.request();
      if (request.method() !== 'PUT') return route.continue();
      keys.push(request.headers()['idempotency-key']);
      if (keys.length > 2) return route.continue();
      await route.fetch({ headers: { ...request.headers(), 'sec-fetch-site': 'same-origin' } });
      await route.abort('connectionreset');
    });
    await page.getByText('It is tested on the cluster first').waitFor();
    await page.getByRole('button', { name: 'Save and test' }).click();
    await page.getByText(', current.').waitFor();
    await becomes(() => keys.length, 3);
    assert.equal(new Set(keys).size, 1);
    assert.equal((await versions()).length, before + 1);
    assert.deepEqual(await stored(), { slurmExtraConfig: 'A=typed', gresConf: 'last words' });
    assert.equal(await page.getByText('Another person saved').count(), 0);
  });
});

test('who may not see it reads why; what is out of service can be read and not changed', async () => {
  await site.as('eve', async (page) => {
    await page.goto(site.app.url + address);
    await page.getByText('This page needs the permission clusters.configure.').waitFor();
    assert.equal(await editorOf(page).count(), 0);
    await checkPage(page, address);
  });
  await setByBob({ slurmExtraConfig: 'A=1' });
  await site.app.test.app.store.write(async ({ db, changed }) => {
    await db.updateTable('clusters').set({ state: 'releasing' }).where('id', '=', alpha).execute();
    changed({ kind: 'cluster', clusterId: alpha });
  });
  await site.as('ada', async (page) => {
    await page.goto(site.app.url + address);
    await page.getByText('Read-only: the cluster is not in service').waitFor();
    await untilSays(page, 'A=1');
    await editorOf(page).click();
    await page.keyboard.type('nothing');
    assert.equal(await editorOf(page).inputValue(), 'slurmExtraConfig: A=1\n');
    assert.equal(await page.getByRole('button', { name: 'Save and test' }).count(), 0);
  });
});
