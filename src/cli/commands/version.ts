/** `andromeda version`. */
import manifest from '../../../package.json' with { type: 'json' };
import { build } from '../../lib/packaging.ts';
import { printAnswer } from '../answer.ts';
import type { Outcome } from '../exit.ts';

/**
 * Prints one part and its version on each line; parts that do not know theirs are left out. `built` is the date of the
 * commit, so that two builds of the same source are the same file.
 */
export async function version(
  { output }: { output: string },
  components?: () => Promise<Record<string, string>>,
): Promise<Outcome> {
  const { node, openssl } = process.versions;
  const others = (await components?.().catch(() => undefined)) ?? {};
  const source = build
    ? { commit: build.commit, built: build.date }
    : { built: 'no, it runs from a checkout' };
  const json = { andromeda: manifest.version, ...source, node, openssl, ...others };
  const text = Object.entries(json)
    .map(([name, value]) => `${name} ${value}`)
    .join('\n');
  await printAnswer({ json, text }, output);
  return 'ok';
}
