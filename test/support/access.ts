/** People on a cluster as its list has them, and as a decision about them sees them. */
import type { AccessFacts } from '../../src/domain/access/decision.ts';
import type { Manifest, ManifestAccount } from '../../src/domain/access/manifest.ts';

export const ada: ManifestAccount = {
  ...{ userId: 'user_1', username: 'ada', uid: 20000, gid: 20000, home: '/home/ada', shell: '/bin/bash' },
  ...{ loginState: 'ready', keySetGeneration: 1, keyFingerprints: ['SHA256:a'] },
};
export const bob: ManifestAccount = { ...ada, userId: 'user_2', username: 'bob', uid: 20001, gid: 20001 };
export const keyless: ManifestAccount = { ...bob, loginState: 'waiting_for_key', keyFingerprints: [] };

export const manifestOf = (more: Partial<Manifest>): Manifest => ({
  ...{ clusterId: 'c', generation: 1, desiredGeneration: 1, schedulerGeneration: 0, listVersion: 1 },
  ...{ slurmConfiguration: {}, accounts: [], ...more },
});

/** Of a member who is let in over SSH. */
export const accessFacts: AccessFacts = {
  ...{ clusterState: 'active', takesAccessList: true, username: 'ada', isMember: true, role: 'member' },
  ...{ permissions: ['clusters.ssh'], accessEndsAt: null, ended: [], signIn: undefined, policy: {} },
  ...{ activeKeys: ['SHA256:a'], unfitKeys: [], lapsedKeys: [], isListed: true },
  confirmed: { loginState: 'ready', keyFingerprints: ['SHA256:a'] },
  loginNodes: [{ host: '10.0.0.5', port: 22, hostKey: 'ssh-ed25519 AAAA', up: true }],
  ...{ observedMsAgo: 0, failure: null },
};
