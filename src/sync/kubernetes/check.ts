/** Checks the rights that an API server gives our credentials, one review for each right, because nothing else is certain. */
import type { KubernetesSettings } from '../../domain/kubernetes/settings.ts';
import {
  describeRight,
  type KubernetesCheck,
  KubernetesError,
  leastPrivilege,
  meaningOf,
  neededRights,
  optionalRights,
  type Right,
} from '../../domain/kubernetes/status.ts';
import { createQueue } from '../loop/queue.ts';
import { KubernetesClient, reasonOf } from './client.ts';

const limitMs = 20_000;
const atOnce = 64;

/** Never throws: an unreachable API server is a result as well. */
export async function checkKubernetes(
  settings: KubernetesSettings,
  roleIds: readonly string[],
): Promise<KubernetesCheck> {
  const check: KubernetesCheck = {
    server: settings.server ?? '',
    user: null,
    fault: null,
    rights: [],
    optional: [],
    cluster_role: leastPrivilege(roleIds),
  };
  const client = new KubernetesClient(settings);
  try {
    const signal = AbortSignal.timeout(limitMs);
    check.server = (await client.open(signal)).credentials.server;
    check.user = await whoAmI(client, signal);
    check.rights = await askRights(client, neededRights(roleIds), signal);
    const more = optionalRights.map(({ use: _use, ...right }) => right);
    const allowed = await askRights(client, more, signal);
    check.optional = optionalRights.map(({ use }, index) => ({
      right: allowed[index]?.right ?? '',
      allowed: allowed[index]?.allowed === true,
      use,
    }));
  } catch (error) {
    check.fault = reasonOf(error);
  } finally {
    await client.close();
  }
  return check;
}

async function whoAmI(client: KubernetesClient, signal: AbortSignal): Promise<string | null> {
  const apiVersion = 'authentication.k8s.io/v1';
  const path = `/apis/${apiVersion}/selfsubjectreviews`;
  const body = { apiVersion, kind: 'SelfSubjectReview' };
  try {
    const request = { method: 'POST', path, body } as const;
    const { status } = await client.request<{ status?: { userInfo?: { username?: string } } }>(
      request,
      signal,
    );
    return status?.userInfo?.username ?? null;
  } catch (error) {
    // Kubernetes before 1.28 does not have this API.
    if (error instanceof KubernetesError && meaningOf(error).kind === 'missing') return null;
    throw error;
  }
}

async function askRights(
  client: KubernetesClient,
  rights: readonly Right[],
  signal: AbortSignal,
): Promise<KubernetesCheck['rights']> {
  const apiVersion = 'authorization.k8s.io/v1';
  const queue = createQueue(atOnce);
  const ask = async (right: Right) => {
    const spec = { resourceAttributes: right };
    const body = { apiVersion, kind: 'SelfSubjectAccessReview', spec };
    const request = { method: 'POST', path: `/apis/${apiVersion}/selfsubjectaccessreviews`, body } as const;
    const { status } = await client.request<{ status?: { allowed?: boolean } }>(request, signal);
    return { right: describeRight(right), allowed: status?.allowed === true };
  };
  return Promise.all(rights.map((right) => queue(() => ask(right))));
}
