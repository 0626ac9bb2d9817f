/** A server that starts a login node and then only waits: for tests that kill it or run it as someone else. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createLogger } from '../../../src/lib/log.ts';
import { startListeningNode } from './listening.ts';

const [dir = '', publicKey = ''] = process.argv.slice(2);
const account = { username: 'ada', uid: 20001, gid: 20001, home: '/home/ada', shell: '/bin/sh' };
const node = await startListeningNode({
  dataDir: join(dir, 'data'),
  authorizedKeys: [readFileSync(publicKey, 'utf8').trim()],
  accounts: [account],
  log: createLogger('warn'),
});
console.log(JSON.stringify({ port: node.port, pid: node.pid }));
setInterval(() => undefined, 1000);
