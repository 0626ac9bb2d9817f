/** `andromeda kubeconfig`: a cluster's kubeconfig, printed or merged into a file. */
import type { Answer } from '../answer.ts';
import { at, query } from '../net/api.ts';
import { optional, reads } from '../verb.ts';
import { type OrgOptions, orgFlag } from './caller.ts';
import { findCluster } from './cluster.ts';

export interface Kubeconfig {
  kubeconfig: string;
  accessExpiresAt?: string;
}

export const kubeconfig = reads<OrgOptions & { merge?: string; use?: true }>({
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
    const { id, name, organization } = await findCluster({ api, platform }, wanted, options);
    const path = at`/clusters/${id}/kubeconfig` + query({ organizationId: organization.id });
    const json = await platform.get<Kubeconfig>(path);
    const ends = json.accessExpiresAt === undefined ? [] : [`Your access ends at ${json.accessExpiresAt}.`];
    if (merge === undefined)
      return { json, text: json.kubeconfig.trimEnd(), ...(ends[0] && { said: ends[0] }) };
    const { mergeKubeconfig } = await import('./kubeconfig-file.ts');
    const isCurrent = await mergeKubeconfig(merge, json.kubeconfig, use ?? false);
    const how = isCurrent ? 'kubectl uses it now' : `use it with \`kubectl --context ${id}\``;
    return { json, text: '', said: [`${name} is in ${merge}; ${how}.`, ...ends].join('\n') };
  },
});
