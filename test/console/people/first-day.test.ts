/** A member's first day with the keyboard alone: from the sign-in to a shell, and the key that is lost the next day. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { FileChooser, Page } from 'playwright-core';
import { alpha, becomes } from '../../support/app.ts';
import { temporaryDirectory } from '../../support/directory.ts';
import { limit } from '../../support/limit.ts';
import { newSecurityKey } from '../../support/security-keys.ts';
import { keygen } from '../../support/ssh-keys.ts';
import { password } from '../harness.ts';
import { type Keyboard, useKeyboard } from '../keyboard.ts';
import { show, test, useConsole } from '../page.ts';

const run = promisify(execFile);

const site = useConsole();

/** Only the keyboard to use a page of the console with, in a browser that has nothing of anybody. */
async function withKeyboard(use: (page: Page, keys: Keyboard) => Promise<void>): Promise<void> {
  await site.withStranger(async (page) => {
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    const keys = await useKeyboard(page);
    await page.goto(site.app.url);
    await use(page, keys);
  });
}

async function signIn(page: Page, keys: Keyboard, name: string): Promise<void> {
  await keys.expectFocus(page.getByLabel('Email'));
  await keys.type(`${name}@physics.example`);
  await keys.press('Tab');
  await keys.expectFocus(page.getByLabel('Password'));
  await keys.type(password);
  await keys.press('Enter');
  await page.getByText('Live', { exact: true }).waitFor();
}

/** Copies what is beside the button, and returns it. */
async function copy(page: Page, keys: Keyboard, name: string): Promise<string> {
  const button = page.getByRole('button', { name: `Copy: ${name}` });
  await keys.activate(button);
  await button.getByText('Copied', { exact: true }).waitFor();
  await keys.expectFocus(button);
  return String(await page.evaluate('navigator.clipboard.readText()'));
}

test('with the keyboard alone: three steps to a shell', async () => {
  using directory = temporaryDirectory();
  const key = keygen('-t', 'ed25519');
  await withKeyboard(async (page, keys) => {
    await signIn(page, keys, 'bob');
    await page.getByText('Three steps to a shell').waitFor();

    // The way past the menu.
    await keys.activate(page.getByRole('link', { name: 'Skip to content' }));
    await keys.expectFocus(page.getByRole('main'));

    // How to make a key.
    await keys.activate(page.getByText('No key yet? Create one'));
    assert.equal(await copy(page, keys, 'create a key'), 'ssh-keygen -t ed25519');
    assert.equal(await copy(page, keys, 'show the public key'), 'cat ~/.ssh/id_ed25519.pub');

    // The private half by mistake, then the public one.
    const field = page.getByLabel('Public key', { exact: true });
    await keys.tabTo(field, 'Shift+Tab');
    await keys.type('-----BEGIN OPENSSH PRIVATE KEY-----');
    await page.getByText('This is a private key').waitFor();
    await keys.expectFocus(field);
    await keys.type(key.publicKey.trim());
    await keys.activate(page.getByRole('button', { name: 'Register the key' }));

    // The form is gone; what became of it has the focus.
    const first = page
      .getByRole('listitem')
      .filter({ has: page.getByRole('heading', { name: 'Your SSH key' }) });
    await first.getByText('Registered').waitFor();
    await keys.expectFocus(first);
    await page.getByText('You can log in to alpha').waitFor();

    const line = await copy(page, keys, 'log in to alpha');
    assert.equal(line, `ssh -p ${site.app.test.gatewayPort} ${alpha}.bob@127.0.0.1`);
    await keys.activate(page.getByText('SSH config, VS Code, host key'));
    const block = await copy(page, keys, 'ssh configuration of alpha');
    const known = await copy(page, keys, 'host key of the gateway to alpha');

    // What was copied is all that ssh needs.
    const file = (name: string) => join(directory.path, name);
    writeFileSync(file('key'), key.privateKey, { mode: 0o600 });
    writeFileSync(file('known_hosts'), `${known}\n`);
    writeFileSync(
      file('config'),
      `${block}\n    IdentityFile ${file('key')}\n    IdentitiesOnly yes\n    IdentityAgent none\n    UserKnownHostsFile ${file('known_hosts')}\n`,
    );
    const options = ['-F', file('config'), '-o', 'BatchMode=yes', '-o', 'StrictHostKeyChecking=yes'];
    const { stdout } = await run('ssh', [...options, 'andromeda-alpha', 'echo a shell of $USER'], {
      timeout: limit(60_000),
    });
    assert.equal(stdout, 'a shell of bob\n');
  });
});

test('with the keyboard alone: a key out of a file, dialogs that give the focus back, and a key that is lost', async () => {
  using directory = temporaryDirectory();
  const file = join(directory.path, 'id_ed25519.pub');
  writeFileSync(file, keygen('-t', 'ed25519').publicKey);
  await withKeyboard(async (page, keys) => {
    // Long before: it takes the browser a moment to pass choosing a file on.
    const choosing = Promise.withResolvers<FileChooser>();
    page.on('filechooser', choosing.resolve);
    await signIn(page, keys, 'ada');
    await keys.press('Control+k');
    await keys.expectFocus(page.getByRole('textbox', { name: 'Where to' }));
    await keys.type('keys');
    await page.getByRole('dialog').getByRole('link', { name: 'Keys', exact: true }).waitFor();
    await keys.press('Enter');
    // Another page begins at its heading.
    await keys.expectFocus(page.getByRole('heading', { level: 1, name: 'SSH keys' }));

    const open = page.getByRole('button', { name: 'Register a key' }).first();
    const dialog = page.getByRole('dialog', { name: 'Register a key' });
    const field = dialog.getByLabel('Public key', { exact: true });
    await keys.activate(open);
    await keys.expectFocus(field);
    await keys.checkTrap(dialog);
    await keys.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    await keys.expectFocus(open);
    await keys.press('Space');
    await keys.expectFocus(field);
    await keys.activate(dialog.getByRole('button', { name: 'Close' }));
    await dialog.waitFor({ state: 'detached' });
    await keys.expectFocus(open);

    await keys.press('Enter');
    await keys.tabTo(dialog.getByLabel('Or choose a file'));
    await keys.press('Enter');
    await (await choosing.promise).setFiles(file);
    await becomes(async () => (await field.inputValue()).startsWith('ssh-ed25519 '), true);
    await keys.activate(dialog.getByRole('button', { name: 'Register the key' }));
    await dialog.waitFor({ state: 'detached' });
    await keys.expectFocus(open);
    await page.getByText('You have 1 active key').waitFor();

    // The command in a terminal, and back.
    const command = page.getByRole('button', { name: 'Show command' }).first();
    await keys.activate(command);
    await page.getByText('In a terminal').first().waitFor();
    assert.equal(await copy(page, keys, 'the command'), 'andromeda keys');
    await keys.press('Escape');
    await keys.expectFocus(command);

    // What asks before it does something begins where nothing is done yet.
    const revoke = page.getByRole('dialog', { name: 'Revoke this key?' });
    await keys.activate(page.getByRole('button', { name: 'Revoke…' }));
    await keys.expectFocus(revoke.getByRole('button', { name: 'Close' }));
    await keys.checkTrap(revoke);
    await keys.activate(revoke.getByRole('button', { name: 'Revoke', exact: true }));
    await revoke.waitFor({ state: 'detached' });
    await page.getByText('You have no active keys').waitFor();
    // The row is gone, and the panel that it was in says what to do next.
    const panel = page
      .locator('.panel')
      .filter({ has: page.getByRole('heading', { name: 'Active', exact: true }) });
    await keys.expectFocus(panel);
    await keys.activate(panel.getByRole('button', { name: 'Register a key' }));
    await keys.expectFocus(field);
  });
});

test('the form takes a security key, and the service says which keys it takes', () =>
  site.as('eve', async (page) => {
    await show(page, '/keys');
    await page.getByRole('button', { name: 'Register a key' }).first().click();
    const dialog = page.getByRole('dialog', { name: 'Register a key' });
    await dialog.getByLabel('Public key', { exact: true }).fill(`${newSecurityKey().publicKey} eve's key`);
    await dialog.getByRole('button', { name: 'Register the key' }).click();
    await page.getByText('Only Ed25519 keys are accepted, not sk-ssh-ed25519@openssh.com').first().waitFor();
  }));
