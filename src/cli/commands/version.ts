import manifest from '../../../package.json' with { type: 'json' };
import { build } from '../../lib/packaging.ts';
import { type EnvironmentOptions, selectEnvironment } from '../environment.ts';
import { exitStatus } from '../exit.ts';
import { differenceNotice, offeredVersion } from '../net/discovery.ts';
import { printAnswer } from '../output.ts';
import { findKey, openLocalState } from '../session/local-state.ts';

const serviceMs = 2_000;

/**
 * Prints one component and its version on each line; components without a known version are omitted. `built` is the commit's
 * date, so that builds of one source are identical. `service`: the one that the profile is bound to.
 */
export async function version(
  { output, ...options }: EnvironmentOptions & { output: string },
  components?: () => Promise<Record<string, string>>,
): Promise<number> {
  const { node, openssl } = process.versions;
  const [others = {}, service] = await Promise.all([
    components?.().catch(() => undefined),
    serviceOf(options),
  ]);
  const source = build
    ? { commit: build.commit, built: build.date }
    : { built: 'no, it runs from a checkout' };
  const json = { andromeda: manifest.version, ...source, node, openssl, ...others, ...service?.line };
  const text = Object.entries(json)
    .map(([name, value]) => `${name} ${value}`)
    .join('\n');
  await printAnswer(
    { json, text, ...(service?.notice !== undefined && { message: service.notice }) },
    output,
  );
  return exitStatus.ok;
}

async function serviceOf(options: EnvironmentOptions) {
  const selection = selectEnvironment(options);
  // Without a home or with a damaged profile there is no service line: other commands report that.
  const key = await (async () => findKey(openLocalState(), selection))().catch(() => undefined);
  const found = key && (await offeredVersion(key.platformUrl, serviceMs));
  if (!key || found === undefined) return undefined;
  return { line: { service: found }, notice: differenceNotice(key.platformUrl, found) };
}
