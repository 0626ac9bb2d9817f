/**
 * What the executable runs first. Its code is in parts, each a script with what V8 made of it, so that `version` and
 * `call` need not carry the server; its addons are files that the system's loader can open.
 *
 *   start.ts (here) → src/main.ts or src/login-node/main.ts → code.ts (other parts, when they are imported)
 *                                                           → addons.ts → cache-place.ts (native addons)
 *
 * The build puts `globalThis[partsKey]` where code imports a part or requires an addon (scripts/build/bundle.ts).
 */
import { getRawAsset } from 'node:sea';
import { createAddonLoader } from './addons.ts';
import { createCodeLoader, partsKey } from './code.ts';
import { loginNodeRole } from './role.ts';

const asset = (name: string) => Buffer.from(getRawAsset(name) as ArrayBuffer);
const code = createCodeLoader({
  source: (name) => asset(`code/${name}`).latin1Slice(),
  compiled: (name) => asset(`compiled/${name}`),
  require,
});
const addons = createAddonLoader((file) => asset(`addon/${file}`));
Object.assign(globalThis, { [partsKey]: { code: code.load, addon: addons } });

if (process.argv[2] === loginNodeRole) {
  process.argv.splice(2, 1);
  import('../../../src/login-node/main.ts');
} else {
  import('../../../src/main.ts');
}
