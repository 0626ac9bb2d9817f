/**
 * `andromeda doctor`: finds faults between this machine and a shell. Checks the steps of `andromeda ssh` in order, changes
 * only a token that must be renewed and known host keys, and skips checks that depend on a failed step.
 *
 *   service.ts (address, TLS, clock, sign-in) → ssh-setup.ts (ssh, keys, agent) → clusters.ts (access, a login, gateway)
 */
import type { EnvironmentOptions } from '../environment.ts';
import { exitStatus } from '../exit.ts';
import { print } from '../output.ts';
import type { ServerCommands } from '../server-commands.ts';
import { checkClusters, findUses } from './clusters.ts';
import type { Finding } from './finding.ts';
import { checkService } from './service.ts';
import { checkSshSetup } from './ssh-setup.ts';

export interface DoctorOptions extends EnvironmentOptions {
  /** The configuration of an installation on this host, which the server's part checks. */
  config?: string;
  quiet: boolean;
  json: boolean;
}

export async function doctor(
  cluster: string | undefined,
  options: DoctorOptions,
  server: ServerCommands | undefined,
): Promise<number> {
  const { config, quiet, json, ...environment } = options;
  const isAboutLaptop = cluster !== undefined || Object.keys(environment).length > 0;
  if (server && (config !== undefined || (!isAboutLaptop && (await server.hasInstallation()))))
    return server.doctor({ quiet, json, ...(config !== undefined && { config }) });
  return report(findings(cluster, environment), { quiet, json });
}

async function* findings(cluster: string | undefined, options: EnvironmentOptions): AsyncGenerator<Finding> {
  const signedIn = yield* checkService(options);
  const uses = signedIn ? await findUses(cluster, options) : undefined;
  // A person who only uses kubectl needs no key.
  if (!Array.isArray(uses) || uses.some((use) => use.ssh.granted)) yield* checkSshSetup(signedIn && options);
  if (uses !== undefined) yield* checkClusters(uses, cluster !== undefined, options);
}

async function report(
  found: AsyncIterable<Finding>,
  { quiet, json }: { quiet: boolean; json: boolean },
): Promise<number> {
  const all: Finding[] = [];
  for await (const finding of found) {
    all.push(finding);
    if (!json && !(quiet && finding.verdict === 'ok')) print(lineOf(finding));
  }
  const first =
    all.find(({ verdict }) => verdict === 'wrong') ?? all.find(({ verdict }) => verdict === 'warn');
  if (json)
    print(JSON.stringify({ findings: all, ...(first && { todo: first.fix ?? first.text }) }, null, 2));
  else if (first)
    print(
      `\n${first.verdict === 'wrong' ? 'Do this first' : 'You may want to do this'}: ${first.fix ?? first.text}`,
    );
  else if (!quiet) print('\nNothing is wrong.');
  return first?.verdict === 'wrong' ? exitStatus.failure : exitStatus.ok;
}

function lineOf({ verdict, about, text }: Finding): string {
  return `${verdict.padEnd(5)}  ${about.padEnd(11)}  ${text.replaceAll('\n', ' ')}`;
}
