/**
 * Makes what V8 makes of each part, for the executable to carry: `compile.ts ASSETS PART…` writes ASSETS/compiled/PART.
 * V8 keeps the functions that were called by then, so the parts are run here as at a start.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { GCProfiler, setFlagsFromString } from 'node:v8';
import type { ServerCommands } from '../../src/cli/server-commands.ts';
import { createCodeLoader } from './executable/code.ts';
import { giveParts } from './executable/parts.ts';

const [assets = '', ...parts] = process.argv.slice(2);
// What V8 makes of a function has four bytes that it does not write. They are zero in memory that was never used, and part of
// an address in memory that a collection of garbage gave back: so there must be none (the sizes of the heap in main.ts).
const collections = new GCProfiler();
collections.start();
const code = createCodeLoader({
  // ASCII. As Latin-1 it would lie outside of the heap, and so much of that would have a collection begin.
  source: (name) => readFileSync(join(assets, 'code', name), 'utf8'),
  require: createRequire(import.meta.url),
});
giveParts({
  code: code.load,
  addon(file) {
    const module = { exports: {} };
    process.dlopen(module, join(assets, 'addon', file));
    return module.exports;
  },
  startWorker() {
    throw new Error('no threads here');
  },
  bytes: () => Buffer.alloc(0),
  text: (path) => readFileSync(join(assets, 'text', path), 'utf8'),
});
// ssh2 gets its WebAssembly ready in the background, and calls functions of its own when that is done. Here it is done at
// once: what V8 makes depends on the order in which things are called.
const { WebAssembly: wasm } = globalThis as unknown as { WebAssembly: Wasm };
wasm.instantiate = async (bytes, imports) => {
  const module = new wasm.Module(bytes);
  return { module, instance: new wasm.Instance(module, imports) };
};
for (const name of parts) code.load(name);
await setImmediate();
const { runProcess } = code.load('cli/program') as typeof import('../../src/cli/program.ts');
const { components } = code.load(
  'service/compose/components',
) as typeof import('../../src/service/compose/components.ts');
await runProcess(['version'], { components } as ServerCommands);
if (collections.stop().statistics.length > 0)
  throw new Error('V8 collected garbage: give the heap of the build more room.');
// main.ts started this with other flags, so that the same source makes the same bytes: what was compiled further in the
// background, or dropped again, is as the machine has time. What was compiled with other flags than those it meets is
// refused, so the flags are as usual again.
for (const flag of [
  '--hash-seed=0',
  '--random-seed=0',
  '--sparkplug',
  '--flush-bytecode',
  '--concurrent-recompilation',
  '--invocation-count-for-maglev=400',
  '--min-semi-space-size=0',
  '--max-semi-space-size=0',
  '--initial-old-space-size=0',
])
  setFlagsFromString(flag);
for (const [name, script] of code.scripts) {
  const file = join(assets, 'compiled', name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, script.createCachedData());
}

interface Wasm {
  Module: new (bytes: unknown) => object;
  Instance: new (module: object, imports: unknown) => object;
  instantiate(bytes: unknown, imports: unknown): Promise<{ module: object; instance: object }>;
}
