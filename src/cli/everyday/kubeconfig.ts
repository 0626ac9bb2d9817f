/** `andromeda kubeconfig`: a cluster's kubeconfig, printed or merged into a file. */
import type { Answer } from '../answer.ts';
import { type EnvironmentOptions, selectEnvironment } from '../environment.ts';
import { failure } from '../exit.ts';
import { storedSession } from '../session/current.ts';
import { openLocalState } from '../session/local-state.ts';
import { optional, reads } from '../verb.ts';
import { type OrgOptions, orgFlag } from './caller.ts';
import { findUsableCluster } from './granted-cluster.ts';

export const kubeconfig = reads<OrgOptions & EnvironmentOptions & { merge?: string; use?: true }>({
  usage: 'kubeconfig <cluster>',
  summary: "print a cluster's kubeconfig; it holds no secret, kubectl signs you in when it needs to",
  example: 'kubeconfig gamma --merge ~/.kube/config --use',
  flags: [
    orgFlag,
    optional('--merge <file>', 'put it into this file instead; what else is in there stays'),
    optional('--use', 'make it the one that kubectl uses from now on'),
  ],
  formats: ['text', 'json', 'yaml'],
  async run({ api, platform, options: { merge, use, ...options } }, wanted = ''): Promise<Answer> {
    const { id, name, organizationId, notices } = await findUsableCluster({ api, platform }, wanted, options);
    const query = { organizationId };
    const json = await platform.get('/clusters/{clusterId}/kubeconfig', { path: { clusterId: id }, query });
    const expected = { clusterId: id, issuer: await issuerOf(options) };
    const { parseKubeconfig } = await import('./kubeconfig-shape.ts');
    const checked = parseKubeconfig(json.kubeconfig, expected);
    if (typeof checked === 'string')
      throw failure(`The kubeconfig that the Platform API gave is not used: ${checked}.`);
    const ends = json.accessExpiresAt === undefined ? [] : [`Your access ends at ${json.accessExpiresAt}.`];
    const notes = [...ends, ...notices];
    if (merge === undefined)
      return {
        json,
        text: await formatKubeconfig(checked),
        ...(notes.length > 0 && { message: notes.join('\n') }),
      };
    const { mergeKubeconfig } = await import('./kubeconfig-file.ts');
    const isCurrent = await mergeKubeconfig(merge, checked, { ...expected, use: use ?? false });
    const how = isCurrent ? 'kubectl uses it now' : `use it with \`kubectl --context ${id}\``;
    return { json, text: '', message: [`${name} is in ${merge}; ${how}.`, ...notes].join('\n') };
  },
});

/** Where the person of this session signs in. */
async function issuerOf(options: EnvironmentOptions): Promise<string> {
  const session = await storedSession(openLocalState(), selectEnvironment(options));
  return session?.issuer ?? '';
}

/** Serialised anew: two YAML readers may not agree on text that the server wrote. */
async function formatKubeconfig(checked: object): Promise<string> {
  const [{ stringify }, { forKubectl }] = await Promise.all([
    import('yaml'),
    import('./kubeconfig-shape.ts'),
  ]);
  return stringify(checked, { ...forKubectl, lineWidth: 0 }).trimEnd();
}
