/** What the command line believes of the API's answers is what openapi/business.yaml promises: the compiler checks it. */
import { test } from 'node:test';
import type { components, operations } from '../../../src/api/business.ts';
import type { AuditEntry } from '../../../src/cli/admin/audit.ts';
import type { Cluster } from '../../../src/cli/admin/cluster.ts';
import type { Gateway } from '../../../src/cli/admin/gateway.ts';
import type { Grant } from '../../../src/cli/admin/grant.ts';
import type { Machine } from '../../../src/cli/admin/machine.ts';
import type { Member, MemberPermissions, Membership } from '../../../src/cli/admin/member.ts';
import type { Organization } from '../../../src/cli/admin/organization.ts';
import type { Person } from '../../../src/cli/admin/person.ts';
import type { Plan } from '../../../src/cli/admin/plan-text.ts';
import type { Purchase } from '../../../src/cli/admin/purchase.ts';
import type { Reservation } from '../../../src/cli/admin/reservation.ts';
import type { SshSession } from '../../../src/cli/admin/session.ts';

type Schemas = components['schemas'];
/** Fails to compile when the API's type lacks a field that the command line reads, or has it otherwise. */
type Reads<Api extends Believed, Believed> = Api;

export type Checked = [
  Reads<Schemas['OperatorOrganization'], Organization>,
  Reads<Schemas['Person'], Person>,
  Reads<Schemas['Membership'], Membership>,
  Reads<Schemas['OperatorMember'], Member>,
  Reads<Schemas['MemberPermissions'], MemberPermissions>,
  Reads<Schemas['OperatorCluster'], Cluster>,
  Reads<Schemas['OperatorMachine'], Machine>,
  Reads<Schemas['OperatorGrant'], Grant>,
  Reads<Schemas['Reservation'], Reservation>,
  Reads<Schemas['StoragePurchase'], Purchase>,
  Reads<Schemas['Session'], SshSession>,
  Reads<Schemas['AuditEntry'], AuditEntry>,
  Reads<Schemas['LabPlan'], Plan>,
  Reads<operations['operatorGetGateway']['responses'][200]['content']['application/json'], Gateway>,
];

test("the command line's shapes are those of openapi/business.yaml (tsc --noEmit holds it)", () => {});
