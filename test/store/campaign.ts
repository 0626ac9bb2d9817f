/** A short run of `npm run campaign`, and what it prints where it finds nothing. */
import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

const main = fileURLToPath(new URL('../../scripts/campaign/main.ts', import.meta.url));

export async function campaign(...args: string[]): Promise<string> {
  const child = spawn(process.execPath, [main, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  return text(child.stdout);
}

export const clean = /: \d+ rounds?, [1-9]\d* writes answered, 0 faults\./;
