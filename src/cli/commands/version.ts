/** `andromeda version`. */
import manifest from '../../../package.json' with { type: 'json' };
import { printAnswer } from '../answer.ts';
import type { Outcome } from '../exit.ts';

/** Prints one part and its version on each line; parts that do not know theirs are left out. */
export async function version(
  { output }: { output: string },
  components?: () => Promise<Record<string, string>>,
): Promise<Outcome> {
  const { node, openssl } = process.versions;
  const others = (await components?.().catch(() => undefined)) ?? {};
  const json = { andromeda: manifest.version, node, openssl, ...others };
  const text = Object.entries(json)
    .map(([name, value]) => `${name} ${value}`)
    .join('\n');
  await printAnswer({ json, text }, output);
  return 'ok';
}
