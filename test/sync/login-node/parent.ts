/** A server that starts a login node and then only waits: for tests that kill it or run it as someone else. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createLogger } from '../../../src/lib/log.ts';
import { startListeningNode } from './listening.ts';

const [dir = '', publicKey = ''] = process.argv.slice(2);
// Numbers of their own: the kernel counts a number's processes over the whole machine, and these tests use up what it may have.
const accounts = ['ada', 'bob'].map((username, at) => {
  return { username, uid: 24001 + at, gid: 24001 + at, shell: '/bin/sh' };
});
const node = await startListeningNode({
  dataDir: join(dir, 'data'),
  authorizedKeys: () => [readFileSync(publicKey, 'utf8').trim()],
  accounts,
  log: createLogger('warn'),
});
console.log(JSON.stringify({ port: node.port, pid: node.pid }));
setInterval(() => undefined, 1000);
