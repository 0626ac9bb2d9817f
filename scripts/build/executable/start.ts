/**
 * What the executable runs first. Its code is in parts, each a script with what V8 made of it, so that `version` and
 * `call` need not carry the server; its addons are files that the system's loader can open.
 *
 *   start.ts (here) → src/main.ts or the login node's main.ts → code.ts (other parts, when they are imported)
 *                                                           → addons.ts → cache-directory.ts (native addons)
 *
 * Code asks for all of it by way of parts.ts.
 */
import { getRawAsset } from 'node:sea';
import { isMainThread, Worker, workerData } from 'node:worker_threads';
import { createAddonLoader } from './addons.ts';
import { createCodeLoader } from './code.ts';
import { giveParts, parts } from './parts.ts';
import { exitRole, loginNodeRole } from './role.ts';

const asset = (name: string) => Buffer.from(getRawAsset(name) as ArrayBuffer);
/** What a thread is given besides what it asked for. */
interface ThreadData {
  part: string;
  addonPaths: Map<string, string>;
}

const thread = isMainThread ? undefined : (workerData as ThreadData);
const addonPaths = thread?.addonPaths ?? new Map<string, string>();
giveParts({
  code: createCodeLoader({
    source: (name) => asset(`code/${name}`).toString('latin1'),
    compiled: (name) => asset(`compiled/${name}`),
    require,
  }).load,
  addon: createAddonLoader((file) => asset(`addon/${file}`), addonPaths),
  text: (path) => asset(`text/${path}`).toString(),
  bytes: (path) => asset(`bytes/${path}`),
  startWorker(part, data) {
    const given: ThreadData = { part, addonPaths };
    return new Worker(asset('start.js').toString('latin1'), {
      eval: true,
      workerData: { ...data, ...given },
    });
  },
});

if (thread) {
  parts().code(thread.part);
} else if (process.argv[2] === loginNodeRole) {
  process.argv.splice(2, 1);
  import('../../../src/sync/simulated/login-node/main.ts');
} else if (process.argv[2] === exitRole) {
  process.exitCode = Number(process.argv[3]);
} else {
  import('../../../src/main.ts');
}
