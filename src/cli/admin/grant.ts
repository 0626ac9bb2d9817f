/** `andromeda admin grant`: clusters and namespaces shared with people. */

import { printer } from '../answer.ts';
import type { Business } from '../net/operations.ts';
import { parseEnd } from '../time.ts';
import { type Noun, optional, required, writes } from '../verb.ts';
import { findCluster } from './cluster.ts';
import { changesOne, lists } from './common-verbs.ts';

type Grant = Business['OperatorGrant'];

interface AddOptions {
  cluster: string;
  relation: string;
  namespace?: string;
  roleId?: string;
  allowWiderRole?: true;
  expires?: string;
}

const grants = printer<Grant>(
  {
    PERSON: ({ grant }) => grant.username,
    CLUSTER: (row) => row.cluster_name,
    RELATION: ({ grant }) => grant.relation,
    NAMESPACE: ({ grant }) => grant.scope,
    ROLE: ({ grant }) => grant.role_id,
    EXPIRES: ({ grant }) => grant.expires_at,
    ID: ({ grant }) => grant.id,
  },
  'There are no grants.',
);

export const grant: Noun = {
  name: 'grant',
  summary: 'clusters and namespaces shared with people',
  verbs: [
    lists(
      'grant',
      'every live grant',
      grants,
      (api) => api.get('/operator/grants'),
      (json) => json.grants,
    ),
    writes<AddOptions>({
      usage: 'add <email>',
      summary: 'share a cluster, or one namespace of it, with a person',
      example:
        'grant add eve@elsewhere.example --cluster alpha \\\n      --relation kubernetes.developer --namespace team-a',
      flags: [
        required('--cluster <name>', 'the cluster, by name or ID'),
        required('--relation <relation>', 'what they may do').choices([
          'kubernetes.viewer',
          'kubernetes.developer',
          'kubernetes.admin',
        ]),
        optional('--namespace <namespace>', 'only there'),
        optional('--role-id <role>', 'a ClusterRole that narrows it'),
        optional('--allow-wider-role', 'the role may give more than the relation'),
        optional('--expires <time>', 'when it ends: a time, or a span from now such as 2h'),
      ],
      async run({ api, options }, email) {
        const body = {
          email,
          expires_at: parseEnd('--expires', options.expires, Date.now()),
          cluster_id: (await findCluster(api, options.cluster)).cluster.id,
          relation: options.relation,
          scope: options.namespace,
          role_id: options.roleId,
          ...(options.allowWiderRole && { allow_wider_role: true }),
        };
        return grants.one(await api.post('/operator/grants', { body }));
      },
    }),
    changesOne(
      'grant',
      'revoke',
      'end a grant',
      grants,
      (api, id) => api.post('/operator/grants/{grantID}/revoke', { path: { grantID: id } }),
      'the project is over',
    ),
  ],
};
