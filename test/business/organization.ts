/** What people of an organization, whose owner is Ada, do with each other over the API; they are called by their names. */
import type { Lab } from '../../src/domain/clusters/lab.ts';
import type { LabMember } from '../../src/domain/clusters/lab-member.ts';
import { physics, type Reply, type TestApp } from '../support/app.ts';

/** The organization and its clusters, with these members alone. */
export const physicsOf = (...members: LabMember[]): Lab => ({
  ...physics,
  organizations: [{ slug: 'physics', name: 'Physics', members }],
});

export async function organizationOf(service: TestApp) {
  const org: string = (await service.business('/me', { as: 'ada' })).body.default_org_id;
  const base = `/organizations/${org}`;
  const requests = `${base}/access-requests`;
  const { members } = (await service.business(`${base}/members`, { as: 'ada' })).body;
  const ids: Record<string, string> = Object.fromEntries(
    members.map(({ email, user_id }: Reply['body']) => [email.split('@')[0], user_id]),
  );
  const pathOf = (name: string) => `${base}/members/${ids[name]}/permissions`;
  return {
    ...{ org, base, requests, ids, pathOf },
    /** Sets what a person holds; `ends` by permission. */
    permit: (
      as: string,
      name: string,
      permissions: unknown,
      ends?: object,
      more: { key?: string; reason?: string } = {},
    ) => {
      const body = { permissions, ...(ends && { expires_at: ends }) };
      return service.write(pathOf(name), { as, method: 'PUT', body, ...more });
    },
    held: async (name: string) => (await service.business(pathOf(name), { as: 'ada' })).body,
    remove: (name: string) => service.write(`${base}/members/${ids[name]}/remove`, { as: 'ada' }),
    ask: (as: string, body: object, more: { reason?: string } = {}) =>
      service.write(requests, { as, body, ...more }),
    decide: (as: string, id: string, how: 'approve' | 'decline', more: object = {}) =>
      service.write(`${requests}/${id}/${how}`, { as, ...(how === 'approve' && { body: {} }), ...more }),
  };
}
