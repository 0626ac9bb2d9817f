/** What the everyday commands believe of the APIs' answers is what openapi/*.yaml promise: the compiler checks it. */
import { test } from 'node:test';
import type { components as business } from '../../../src/api/business.ts';
import type { components as platform } from '../../../src/api/platform.ts';
import type { Me, Organization } from '../../../src/cli/everyday/caller.ts';
import type { BusinessCluster, PlatformCluster } from '../../../src/cli/everyday/cluster.ts';
import type { ClusterOptions } from '../../../src/cli/everyday/clusters.ts';
import type { AccessList, Held } from '../../../src/cli/everyday/in-place.ts';
import type { SshKey } from '../../../src/cli/everyday/keys.ts';
import type { Machine } from '../../../src/cli/everyday/machines.ts';
import type { Member } from '../../../src/cli/everyday/members.ts';
import type { SshAccess } from '../../../src/cli/everyday/ssh-access.ts';
import type { StorageEntry } from '../../../src/cli/everyday/storage.ts';

type Business = business['schemas'];
type Platform = platform['schemas'];
/** Fails to compile when the API's type lacks a field that the command line reads, or has it otherwise. */
type Reads<Api extends Believed, Believed> = Api;

export type Checked = [
  Reads<Business['Me'], Me>,
  Reads<Business['Organization'], Organization>,
  Reads<Business['Cluster'], BusinessCluster>,
  Reads<Business['AccessList'], AccessList>,
  Reads<Business['SshKey'], SshKey>,
  Reads<Business['Membership'], Member>,
  Reads<Business['MemberPermissions'], Held>,
  Reads<Platform['Cluster'], PlatformCluster>,
  Reads<Platform['ClusterOptions'], ClusterOptions>,
  Reads<Platform['SshAccess'], SshAccess>,
  Reads<Platform['Machine'], Machine>,
  Reads<Platform['StorageInventoryEntry'], StorageEntry>,
];

test("the commands' shapes are those of openapi/*.yaml (tsc --noEmit holds it)", () => {});
