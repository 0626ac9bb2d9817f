/** The installation as a lab file: what applying one would do, doing it, and writing it out. */
import { isInService } from '../../../domain/clusters/cluster.ts';
import { checkLab, type Lab } from '../../../domain/clusters/lab.ts';
import { type LabStep, planLab } from '../../../domain/clusters/lab-plan.ts';
import { checkHostSettings, type HostRules } from '../../../domain/host-settings.ts';
import { listWantedUsers } from '../../../store/access/access-list-users.ts';
import { appendAuditEntry } from '../../../store/audit/audit.ts';
import { runCommand } from '../../../store/audit/commands.ts';
import { listAllClusters } from '../../../store/clusters/clusters.ts';
import { exportLab, takeSteps } from '../../../store/data-dir/lab.ts';
import { type Tx, tryOut } from '../../../store/engine/index.ts';
import { listDeactivatedEmails } from '../../../store/people/people.ts';
import type { BusinessReply, Operation } from '../operation.ts';
import { type LoginAccount, restartOf, type SlurmCluster } from '../restarts.ts';
import { requireOperator, requireStaff } from './staff.ts';

type Plan = BusinessReply<'operatorPlanLab'>;

/** The installation as a lab file; applying it again changes nothing. */
export const operatorExportLab: Operation<'operatorExportLab'> = async ({ store }, { caller, now }) => {
  await requireStaff(store.read, caller.userId, 'staff.read');
  return exportLab(store.read, now);
};

/** What applying a lab would do: found by doing it, and taking it back. */
export const operatorPlanLab: Operation<'operatorPlanLab'> = async (
  { store, hostRules },
  { caller, body },
) => {
  await requireStaff(store.read, caller.userId, 'staff.read');
  const { lab, prune = false } = body;
  checkLab(lab);
  return tryOut(store, async (tx) => {
    const { plan } = await apply(tx, lab, { prune, actor: caller.userId, commandId: null, hostRules });
    return plan;
  });
};

/** Brings the installation to a lab: all of it, or nothing. Each step has an entry of its own in the audit trail. */
export const operatorApplyLab: Operation<'operatorApplyLab'> = (deps, request) => {
  const { caller, command } = request;
  const { hostRules } = deps;
  const { lab, prune = false } = request.body;
  checkLab(lab);
  const about = { target: 'lab', details: prune ? 'with prune' : '' };
  return runCommand(deps.store, request, {
    operation: 'operatorApplyLab',
    meaning: [lab, prune],
    about,
    authorize: requireOperator,
    async apply(tx, commandId) {
      const { plan, steps } = await apply(tx, lab, {
        prune,
        actor: caller.userId,
        commandId,
        hostRules,
      });
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
  });
};

async function apply(
  tx: Tx,
  lab: Lab,
  options: { prune: boolean; actor: string; commandId: string | null; hostRules: HostRules },
): Promise<{ plan: Plan; steps: LabStep[] }> {
  const { prune, actor, commandId, hostRules } = options;
  const current = await exportLab(tx.db, tx.now);
  const deactivated = await listDeactivatedEmails(tx.db);
  const steps = planLab(current, lab, { prune, now: tx.now, deactivated });
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

/** Whom each Slurm cluster in service must know. */
async function listSlurmAccounts({ db, now }: Tx): Promise<SlurmCluster[]> {
  const lists = new Map<string, LoginAccount[]>();
  const clusters: SlurmCluster[] = [];
  for (const { id, name, state, scheduler, driver, organizationId } of await listAllClusters(db)) {
    if (scheduler !== 'sunk' || !isInService({ state })) continue;
    let accounts = lists.get(organizationId);
    if (!accounts) {
      const users = await listWantedUsers(db, organizationId, now);
      accounts = users.map(({ username, desiredLoginState: loginState }) => ({ username, loginState }));
      lists.set(organizationId, accounts);
    }
    clusters.push({ id, name, rollout: driver.slurm?.rollout ?? 'restart', accounts });
  }
  return clusters;
}

/** What the clusters restart, and whose jobs that ends. */
async function listRestarts(tx: Tx, before: readonly SlurmCluster[]): Promise<Plan['restarts']> {
  const after = await listSlurmAccounts(tx);
  const known = new Set(before.map(({ id }) => id));
  const restarts: Plan['restarts'] = [];
  for (const cluster of [...before, ...after.filter(({ id }) => !known.has(id))]) {
    const stays = after.find(({ id }) => id === cluster.id);
    const had = known.has(cluster.id) ? cluster.accounts : [];
    const restart = await restartOf(tx.db, cluster, had, stays);
    const { added, removed, ended_jobs: jobs } = restart;
    if (added.length + removed.length + jobs.length > 0) restarts.push(restart);
  }
  return restarts;
}
