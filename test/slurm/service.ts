/** The whole service on a lab's cluster: an owner, a member who may log in, one who may not, and a crowd. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Lab } from '../../src/domain/clusters/lab.ts';
import type { SlurmSettings } from '../../src/domain/slurm/settings.ts';
import { alpha, startTestApp, type TestApp } from '../support/app.ts';
import type { SlurmLab } from './lab.ts';

/** How long anything may take that is waited for: machines that run tests are busy. */
export const patienceMs = 90_000;

export const crowd = Array.from({ length: 10 }, (_, index) => `p${index}`);

/** `crowd` or others may have an account. */
export function labOf(slurm: SlurmSettings, people: readonly string[] = crowd): Lab {
  const member = (username: string, permissions: ('clusters.read' | 'clusters.ssh')[]) => ({
    email: `${username}@physics.example`,
    role: 'member' as const,
    username,
    permissions,
  });
  return {
    users: [{ email: 'root@physics.example', name: 'Root', staff: ['staff.operate'] }],
    organizations: [
      {
        slug: 'physics',
        name: 'Physics',
        members: [
          { email: 'ada@physics.example', role: 'owner', username: 'ada' },
          member('abe', ['clusters.read', 'clusters.ssh']),
          member('eve', []),
          ...people.map((name) => member(name, ['clusters.ssh'])),
        ],
      },
    ],
    clusters: [{ name: 'alpha', id: alpha, organization: 'physics', scheduler: 'sunk', slurm }],
  };
}

/** The service with a cluster of these settings, whose login nodes let the gateway in. */
export async function startService(
  lab: SlurmLab,
  changes: Partial<SlurmSettings>,
  config: object = {},
  people?: readonly string[],
): Promise<TestApp> {
  const service = await startTestApp({
    lab: labOf(lab.settings(changes), people),
    sync: { intervalSeconds: 4 },
    // Simulated login nodes end every process of a number on the machine, also those in a cluster's namespaces.
    config: { uids: { base: 40_000 }, ...config },
  });
  const { body } = await service.business('/operator/gateway', { as: 'root' });
  writeFileSync(join(lab.directory, 'etc/gateway.pub'), `${body.public_key}\n`);
  return service;
}

export async function accessList(service: TestApp, orgId: string) {
  return (await service.business(`/organizations/${orgId}/clusters/${alpha}/access`, { as: 'ada' })).body;
}

export async function permit(
  service: TestApp,
  person: { orgId: string; userId: string },
  permissions: string[],
): Promise<void> {
  const path = `/organizations/${person.orgId}/members/${person.userId}/permissions`;
  const { status } = await service.write(path, { as: 'ada', method: 'PUT', body: { permissions } });
  assert.equal(status, 200);
}

export async function optionsOf(service: TestApp, orgId: string) {
  return (await service.platform(`/clusters/${alpha}/options?businessOrgId=${orgId}`, { as: 'ada' })).body;
}
