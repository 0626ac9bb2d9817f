/** A whole installation made at once, from a lab file, in an empty database. */
import type { Lab } from '../domain/lab.ts';
import { planLab } from '../domain/lab-plan.ts';
import { appendAuditEntry } from './audit.ts';
import { isEmpty } from './first-start.ts';
import type { Store } from './index.ts';
import { takeSteps } from './lab.ts';
import { systemUserId } from './people.ts';

/** Makes all that a lab names, in one transaction, as the installation itself; nothing if anything is there. */
export async function createInstallation(store: Store, lab: Lab, source: string): Promise<boolean> {
  return store.write(async (tx) => {
    if (!(await isEmpty(tx.db))) return false;
    const steps = planLab({}, lab, { prune: false, now: tx.now });
    await takeSteps(tx, steps, { actor: systemUserId, commandId: null });
    await appendAuditEntry(tx, {
      actorUserId: systemUserId,
      operation: 'createInstallation',
      target: source,
      reason: 'First start on an empty database',
      result: 'done',
    });
    return true;
  });
}
