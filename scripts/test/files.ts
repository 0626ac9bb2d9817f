/** Which test files begin first, and which are the quick ones. */

/** Longest first, as measured; a file that is not here takes less than any of these. */
export const slow = [
  'test/e2e/cluster.test.ts',
  'test/slurm/rollout.test.ts',
  'test/slurm/jobs.test.ts',
  'test/slurm/e2e.test.ts',
  'test/slurm/console.test.ts',
  'test/slurm/accounts.test.ts',
  'test/slurm/silent.test.ts',
  'test/slurm/interruptions.test.ts',
  'test/slurm/configuration.test.ts',
  'test/slurm/restarts.test.ts',
  'test/slurm/bad-days.test.ts',
  'test/slurm/fence.test.ts',
  'test/slurm/hanging.test.ts',
  'test/slurm/found.test.ts',
  'test/docs/patroni.test.ts',
  'test/e2e/servers.test.ts',
  'test/slurm/left-hosts.test.ts',
  'test/gateway/barrier.test.ts',
  'test/servers/killed.test.ts',
  'test/slurm/per-user.test.ts',
  'test/gateway/process/start.test.ts',
  'test/gateway/limits.test.ts',
  'test/host/systemd.test.ts',
  'test/gateway/process/restart.test.ts',
  'test/store/campaign.test.ts',
  'test/store/postgres/bad-days.test.ts',
  'test/store/postgres/failover.test.ts',
  'test/http/docs.test.ts',
  'test/slurm/ready.test.ts',
  'test/gateway/clients/ansible.test.ts',
  'test/gateway/hostile.test.ts',
  'test/host/backup.test.ts',
  'test/host/migrate.test.ts',
  'test/host/secrets.test.ts',
  'test/docs/walk.test.ts',
  'test/e2e/operator.test.ts',
  // Far from systemd.test.ts, for which it would wait.
  'test/host/upgrade.test.ts',
  'test/gateway/gateway.test.ts',
  'test/http/half-sent.test.ts',
  'test/kubernetes/service.test.ts',
  'test/e2e/not-root.test.ts',
  'test/build/executable.test.ts',
  'test/e2e/walk.test.ts',
  'test/cli/admin/client.test.ts',
  'test/cli/real.test.ts',
  'test/identity/issuer/password-page.test.ts',
  'test/gateway/records.test.ts',
  'test/gateway/access.test.ts',
  'test/gateway/clients/rekey.test.ts',
  'test/cli/everyday/files.test.ts',
  'test/cli/admin/nouns.test.ts',
  'test/cli/auth.test.ts',
  'test/cli/credential-store.test.ts',
  'test/e2e/admin.test.ts',
  'test/e2e/serve.test.ts',
];

/**
 * Whether a file waits for the most part (for daemons, for deadlines) and leaves the processors to others, as measured. Half of
 * the workers begin with these, so that they lie side by side with those that compute.
 */
export function isWaiting(file: string): boolean {
  return file.startsWith('test/slurm/') || waiting.has(file);
}

const waiting = new Set([
  'test/app/clock.test.ts',
  'test/docs/patroni.test.ts',
  'test/e2e/servers.test.ts',
  'test/gateway/flood.test.ts',
  'test/gateway/limits.test.ts',
  'test/gateway/process/hand-over.test.ts',
  'test/gateway/process/restart.test.ts',
  'test/gateway/process/start.test.ts',
  'test/host/systemd.test.ts',
  'test/servers/killed.test.ts',
  'test/store/postgres/bad-days.test.ts',
  'test/store/postgres/failover.test.ts',
  'test/sync/login-node/files.test.ts',
  'test/sync/login-node/lifecycle.test.ts',
  'test/sync/login-node/on-demand.test.ts',
]);

/** Rules, unit tables and one walk through the demonstration: `npm run test:quick`, under a minute. */
export const quick = [
  'test/*.test.ts',
  'test/domain/*.test.ts',
  'test/store/open.test.ts',
  'test/http/documents.test.ts',
  'test/http/judge.test.ts',
  'test/cli/help.test.ts',
  'test/e2e/walk.test.ts',
];

/**
 * Files that run a second time with their stores on PostgreSQL: the store's, and those of the APIs above it that ask the most
 * different queries. What is about SQLite's file (backups, migrations of before, its disk) is not among them.
 */
export const onBoth = [
  'test/store/{invariants,limit-counts,open-sessions,reads,writes}.test.ts',
  'test/store/{access-decision,access-lists}.property.test.ts',
  'test/business/{idempotency,machines,me,member-list,memberships,permissions,purchases}.test.ts',
  'test/business/{reservations,resource-grants,ssh-keys}.test.ts',
  'test/host/accept-break.test.ts',
  'test/business/operator/{audit,hostile-texts,lab,people,problems}.test.ts',
  'test/platform/{clusters,generations,machines,slurm-sessions,ssh-access,storage,usage}.test.ts',
  'test/identity/{authentication,binding}.test.ts',
  'test/identity/issuer/{device-flow,refresh,tokens}.test.ts',
];
