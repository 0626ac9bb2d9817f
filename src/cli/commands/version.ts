/** `andromeda version`. */
import manifest from '../../../package.json' with { type: 'json' };
import type { Outcome } from '../exit.ts';
import { print } from '../output.ts';

/** Prints one part and its version on each line; parts that cannot say are left out. */
export async function version(components?: () => Promise<Record<string, string>>): Promise<Outcome> {
  print(`andromeda ${manifest.version}`);
  print(`node ${process.versions.node}`);
  print(`openssl ${process.versions.openssl}`);
  const others = (await components?.().catch(() => undefined)) ?? {};
  for (const [name, value] of Object.entries(others)) print(`${name} ${value}`);
  return 'ok';
}
