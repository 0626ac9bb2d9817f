/** `andromeda admin cluster check`: what it prints. */

import { type Answer, printer } from '../answer.ts';
import { exitStatus } from '../exit.ts';
import type { Business } from '../net/operations.ts';
import { formatYaml } from '../yaml-file.ts';

type Check = Business['ClusterCheck'];

const rights = printer<Check['rights'][number]>(
  { RIGHT: ({ right }) => right, ALLOWED: ({ allowed }) => (allowed ? 'yes' : 'NO') },
  '',
);

/** What is lacking, and what gives it; the exit status is that of a failure where something is. */
export async function describeCheck(json: Check): Promise<Answer> {
  const { server, user, fault, cluster_role } = json;
  const lacking = json.rights.filter(({ allowed }) => !allowed);
  const who = user ?? 'The service';
  const role = (await formatYaml(cluster_role)).trimEnd();
  // The ClusterRole is alone on stdout, so that it can be piped to kubectl as it is.
  const how = `What is printed is the least that it needs, for kubectl apply -f -; bind it to ${user ?? 'its account'}.`;
  if (fault !== null) {
    const message = `${server || 'The API server'}: ${fault}\n${how}`;
    return { json, text: role, message, status: exitStatus.failure };
  }
  const table = [rights.many(json, json.rights).text, ...(json.optional ?? []).map(describeOptional)].join(
    '\n',
  );
  if (lacking.length === 0) {
    return { json, text: table, message: `${who} has every right that is needed at ${server}.` };
  }
  const message = `${table}\n\n${who} lacks ${lacking.length} of ${json.rights.length} rights at ${server}. ${how}`;
  return { json, text: role, message, status: exitStatus.failure };
}

function describeOptional({ right, allowed, use }: Check['optional'][number]): string {
  return `It may${allowed ? '' : ' not'} ${right}, which it does without: ${allowed ? 'it says' : 'it cannot say'} ${use}.`;
}
