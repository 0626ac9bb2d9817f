/**
 * An issuer as a process of its own: `node killable-issuer.ts PORT DATADIR`. A request with the header `x-die` kills it
 * (SIGKILL) when everything is written and nothing is answered.
 */
import { createServer } from 'node:http';
import { createIssuer } from '../../../src/api/identity/issuer/index.ts';
import { createLogger } from '../../../src/lib/log.ts';
import { openStore } from '../../../src/store/data-dir/open-store.ts';
import { loadIssuerKeys } from '../../support/service-keys.ts';
import { audience, cli } from './harness.ts';

const [port = '', dataDir = ''] = process.argv.slice(2);
const url = `http://127.0.0.1:${port}`;
const store = await openStore(dataDir);
const issuer = await createIssuer({
  url,
  store,
  keys: await loadIssuerKeys(dataDir),
  audience,
  cliClientId: cli,
  log: createLogger('silent'),
});
createServer((req, res) => {
  if (req.headers['x-die'] !== undefined) {
    res.end = () => {
      process.kill(process.pid, 'SIGKILL');
      return res;
    };
  }
  issuer.handle(req, res);
}).listen(Number(port), '127.0.0.1', () => process.stdout.write('listening\n'));
