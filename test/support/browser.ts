/** A real Chromium, where the machine has one. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium, type Page } from 'playwright-core';

const executablePath = '/usr/bin/chromium';

/** Why a test that needs the browser is skipped; false where it is there. */
export const noBrowser = existsSync(executablePath)
  ? false
  : `the browser ${executablePath} is not installed`;

/** Opens a page, without JavaScript unless told, in a fresh profile, and closes all of it afterwards. */
export async function withPage<T>(
  use: (page: Page) => Promise<T>,
  viewport = { width: 1000, height: 800 },
  javaScriptEnabled = false,
): Promise<T> {
  const profile = mkdtempSync(join(tmpdir(), 'andromeda-chromium-'));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath,
    javaScriptEnabled,
    viewport,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
  try {
    const page = await context.newPage();
    page.setDefaultTimeout(15_000);
    return await use(page);
  } finally {
    await context.close();
    rmSync(profile, { recursive: true, force: true });
  }
}
