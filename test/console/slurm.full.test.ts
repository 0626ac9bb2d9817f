/** The editor of the Slurm configuration with as much in it as is taken. */
import { test } from 'node:test';
import { alpha, becomes } from '../support/app.ts';
import { noBrowser } from '../support/browser.ts';
import { signIn } from './harness.ts';
import { show, useConsole } from './page.ts';

const site = useConsole();

test('the largest configuration that is taken can be worked with', { skip: noBrowser }, async () => {
  const ada = await signIn(site.app, 'ada');
  const { default_org_id: org } = await ada.ask('business/me');
  const path = `platform/clusters/${alpha}/scheduler-configuration?businessOrgId=${org}`;
  const script = `#!/bin/sh\n${'echo "a line of a long script"\n'.repeat(2_000)}`;
  const prolog = Object.fromEntries(['a', 'b', 'c', 'd'].map((name) => [`${name}.sh`, script]));
  const lines = 'NodeName=node Gres=gpu:8 # a comment of some length, for the sake of size\n'.repeat(20_000);
  const body = { prolog, slurmExtraConfig: lines, gresConf: 'x'.repeat(200_000) };
  await ada.ask(path, { method: 'PUT', body });
  await site.as('ada', async (page) => {
    await show(page, `/clusters/${alpha}/slurm`);
    const editor = page.getByRole('textbox', { name: 'Slurm configuration of alpha, as YAML' });
    await editor.click();
    await page.keyboard.press('Control+Home');
    await page.keyboard.insertText('cgroupExtraConfig: abcdefghijklmnopqrstuvwxyz\n');
    await page.getByText('It is tested on the cluster first').waitFor();
    await page.getByLabel('Show changes').check();
    await page.reload();
    await becomes(async () => (await editor.inputValue()).includes('abcdefghijklmnopqrstuvwxyz'), true);
    await page.getByText('It is tested on the cluster first').waitFor();
    await page.getByLabel('Reason').fill('large');
    await page.getByRole('button', { name: 'Save and test' }).click();
    await becomes(async () => (await ada.ask(path)).cgroupExtraConfig === 'abcdefghijklmnopqrstuvwxyz', true);
    await page.getByText(', current.').waitFor();
  });
});
