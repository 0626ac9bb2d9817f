/**
 * How soon the executable of `npm run build` has done what takes no time: `version`, and a `call` to a server on this
 * machine that answers at once. The reference is the Node it was made from, doing nothing.
 */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { alternate, median, medianRatio } from './rounds.ts';
import type { Scratch } from './scratch.ts';
import { root } from './service.ts';
import type { Report, Row } from './table.ts';

const rounds = 15;
const aims = { version: 1.6, call: 2.5 };

export async function benchExecutable(scratch: Scratch): Promise<Report> {
  const executable = join(root, 'dist/andromeda');
  if (!existsSync(executable)) {
    return { rows: [], notes: ['executable: there is no dist/andromeda; npm run build makes it.'] };
  }
  const server = createServer((_, response) => response.end('{}'));
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const home = scratch.folder('executable');
  signIn(home, `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const env = { ...process.env, XDG_STATE_HOME: home, XDG_CACHE_HOME: home };
  const timed = (command: string[]) => async () => {
    const began = performance.now();
    await scratch.run(command, { env });
    return (performance.now() - began) / 1000;
  };
  const node = timed([process.execPath, '-e', '0']);
  const version = timed([executable, 'version']);
  const call = timed([executable, 'call', 'business', 'GET', '/me']);
  // The first one unpacks its addons.
  await version();
  const seen = await alternate(rounds, { node, version, call });
  server.close();
  const row = (name: keyof typeof aims): Row => {
    const ratio = medianRatio(seen[name], seen.node);
    return {
      row: `executable, ${name}`,
      ours: `${median(seen[name]).toFixed(3)} s`,
      reference: `${median(seen.node).toFixed(3)} s  node -e 0`,
      ratio,
      aim: `≤ ${aims[name]} times`,
      met: ratio <= aims[name],
    };
  };
  return { rows: [row('version'), row('call')], notes: [] };
}

/** The files of somebody who has signed in. */
function signIn(home: string, url: string): void {
  const session = {
    platformUrl: url,
    businessUrl: url,
    issuer: url,
    clientId: 'bench',
    accessToken: 'token',
    resource: url,
  };
  mkdirSync(join(home, 'andromeda'), { mode: 0o700 });
  const profile = { platformUrl: url, sessions: { [url]: session } };
  writeFileSync(join(home, 'andromeda/default.json'), JSON.stringify(profile));
}
