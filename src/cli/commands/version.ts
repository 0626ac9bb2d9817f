import manifest from '../../../package.json' with { type: 'json' };
import { build, notices } from '../../lib/packaging.ts';
import { type EnvironmentOptions, selectEnvironment } from '../environment.ts';
import { exitStatus } from '../exit.ts';
import { differenceNotice, offeredVersion } from '../net/discovery.ts';
import { printAll, printAnswer } from '../output.ts';
import { findKey, openLocalState } from '../session/local-state.ts';

export type VersionOptions = EnvironmentOptions & { output: string; licences?: true };

const serviceMs = 2_000;

/**
 * Prints one component and its version on each line; components without a known version are omitted. `built` is the commit's
 * date, so that builds of one source are identical. `service`: the one that the profile is bound to.
 */
export async function version(
  { output, licences, ...options }: VersionOptions,
  components?: () => Promise<Record<string, string>>,
): Promise<number> {
  if (licences) {
    await printAll([notices().trimEnd()]);
    return exitStatus.ok;
  }
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
