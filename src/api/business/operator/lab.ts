/** Lab files: planning, applying and exporting the installation. */
import { checkLab, type Lab } from '../../../domain/clusters/lab.ts';
import { checkHostSettings, type HostRules } from '../../../domain/clusters/lab-paths.ts';
import { type LabStep, planLab } from '../../../domain/clusters/lab-plan.ts';
import { appendAuditEntry } from '../../../store/audit/audit.ts';
import { exportLab, takeSteps } from '../../../store/data-dir/lab.ts';
import { withNewKeys } from '../../../store/data-dir/lab-keys.ts';
import { type Tx, tryOut } from '../../../store/engine/index.ts';
import { listDeactivatedEmails } from '../../../store/people/people.ts';
import { listRestarts, listSlurmAccounts } from '../member-plan.ts';
import type { BusinessReply } from '../operation.ts';
import { operatorWrites, staffReads } from './about.ts';

export const operatorExportLab = staffReads<'operatorExportLab'>(async ({ store }, { now }) => {
  return exportLab(store.read, now);
});

/** The changes that applying a lab would make, found by applying it in a transaction that is rolled back. */
export const operatorPlanLab = staffReads<'operatorPlanLab'>(
  async ({ store, hostRules }, { caller, body }) => {
    const { prune = false } = body;
    const lab = checkLab(body.lab);
    return tryOut(store, async (tx) => {
      const { plan } = await apply(tx, lab, { prune, actor: caller.userId, commandId: null, hostRules });
      return plan;
    });
  },
);

/** Applies a lab in one transaction. Each step has an audit entry of its own. */
export const operatorApplyLab = operatorWrites('operatorApplyLab', ({ hostRules }, request) => {
  const { caller, command } = request;
  const { prune = false } = request.body;
  const lab = checkLab(request.body.lab);
  const about = { target: 'lab', details: prune ? 'with prune' : '' };
  return {
    meaning: [lab, prune],
    about,
    async apply(tx, commandId) {
      const { plan, steps } = await apply(tx, lab, { prune, actor: caller.userId, commandId, hostRules });
      for (const { action, kind, name, details } of steps) {
        await appendAuditEntry(tx, {
          actorUserId: caller.userId,
          commandId,
          operation: `operatorApplyLab.${kind}.${action}`,
          target: name,
          reason: command.auditReason,
          sourceAddress: caller.sourceAddress,
          result: 'done',
          details,
        });
      }
      const count = steps.length === 1 ? '1 change' : `${steps.length} changes`;
      return { result: plan, about: { details: [about.details, count].filter(Boolean).join(', ') } };
    },
  };
});

async function apply(
  tx: Tx,
  lab: Lab,
  options: { prune: boolean; actor: string; commandId: string | null; hostRules: HostRules },
): Promise<{ plan: BusinessReply<'operatorPlanLab'>; steps: LabStep[] }> {
  const { prune, actor, commandId, hostRules } = options;
  const current = await exportLab(tx.db, tx.now);
  const deactivated = await listDeactivatedEmails(tx.db);
  const wanted = await withNewKeys(tx.db, lab);
  const steps = planLab(current, wanted, { prune, now: tx.now, deactivated });
  for (const step of steps) {
    if (step.kind !== 'cluster' || step.action === 'remove') continue;
    const before = current.clusters?.find(({ name }) => name === step.name);
    checkHostSettings(hostRules, step.cluster, before);
  }
  const before = await listSlurmAccounts(tx);
  await takeSteps(tx, steps, { actor, commandId });
  const restarts = await listRestarts(tx, before);
  return {
    plan: {
      changes: steps.map(({ action, kind, name, details }) => ({ action, kind, name, details })),
      restarts,
    },
    steps,
  };
}
