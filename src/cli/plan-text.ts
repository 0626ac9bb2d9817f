/** Describes the effects of a lab file, or of changes of members and keys, as text for people. */
import { restartsText } from '../domain/slurm/restarts.ts';
import { visibleLine, visibleName } from '../domain/text.ts';
import { confirm, isAttended } from './ask.ts';
import type { Business } from './net/api.ts';
import { formatTable, printMessage } from './output.ts';

type Plan = Business['LabPlan'];

type MemberPlan = Business['MemberPlan'];

export function isDestructive({ changes, restarts }: Plan): boolean {
  return changes.some(({ action }) => action === 'remove') || restarts.some(endsJobs);
}

function endsJobs(restart: Business['LabRestart']): boolean {
  return restart.ended_jobs.length + (restart.other_jobs ?? 0) > 0 || restart.unknown_jobs === true;
}

export function describePlan({ changes, restarts }: Plan, nothing: string): string {
  if (changes.length === 0 && restarts.length === 0) return nothing;
  const rows = changes.map(({ action, kind, name, details }) => [action, kind, name, details]);
  const table = changes.length === 0 ? [] : [formatTable(['ACTION', 'KIND', 'NAME', 'WHAT'], rows)];
  return [...table, ...restarts.map(onCluster)].join('\n\n');
}

export function describeMemberPlan({ changes, clusters }: MemberPlan): string {
  const rows = changes.map((one) => [
    one.change,
    one.email || '-',
    one.username ?? '-',
    one.result,
    one.message ?? '',
  ]);
  const table = formatTable(['CHANGE', 'EMAIL', 'USERNAME', 'RESULT', 'WHY'], rows);
  const effects = clusters.map(onClusterOfMembers);
  return [table, ...(effects.length > 0 ? effects : ['Nothing changes on the clusters.'])].join('\n\n');
}

export function printEffects({ clusters }: MemberPlan): void {
  if (clusters.length > 0) printMessage(clusters.map(onClusterOfMembers).join('\n\n'));
}

/** Prints the effects of a change on clusters; at a terminal, asks to confirm it if it restarts or ends something. */
export async function confirmPlan(plan: MemberPlan, { yes = false }: { yes?: boolean }): Promise<void> {
  printEffects(plan);
  const ends = plan.clusters.some(
    (one) => one.restarts.length + one.ended_sessions.length > 0 || endsJobs(one),
  );
  if (ends && !yes && isAttended()) await confirm('Go on?');
}

function onClusterOfMembers(effect: MemberPlan['clusters'][number]): string {
  const { waiting_for_key: waiting, ended_sessions: sessions, kubernetes } = effect;
  const isSlurm = effect.added.length + effect.removed.length > 0;
  const lines = isSlurm ? [onCluster(effect)] : [`On cluster ${visibleName(effect.cluster_name)}:`];
  if (waiting.length > 0)
    lines.push(`  Get a login account when they register a key: ${visibleLine(waiting.join(', '))}.`);
  const count = sessions.length + (effect.other_sessions ?? 0);
  if (count > 0) {
    const names = [...new Set(sessions.map(({ username }) => username))].join(', ');
    lines.push(`  Open SSH sessions that end: ${count}${names === '' ? '' : ` (${visibleLine(names)})`}.`);
  }
  for (const { username, before, after } of kubernetes)
    lines.push(`  Kubernetes: ${visibleLine(username)} from ${before ?? 'none'} to ${after ?? 'none'}.`);
  return lines.join('\n');
}

function onCluster(restart: Business['LabRestart'] & { once_keyed?: string[] }): string {
  const { removed, rollout, restarts, ended_jobs: jobs, other_jobs: more = 0, direct } = restart;
  const { once_keyed: later = [] } = restart;
  const added = restart.added.filter((username) => !later.includes(username));
  const when = later.length > 0 && added.length + removed.length === 0 ? ' then' : '';
  const lines = [`On cluster ${visibleName(restart.cluster_name)}:`];
  if (added.length > 0) lines.push(`  New login accounts: ${visibleLine(added.join(', '))}.`);
  if (later.length > 0)
    lines.push(`  Once they have an SSH key, new login accounts: ${visibleLine(later.join(', '))}.`);
  if (removed.length > 0) lines.push(`  Login accounts that go: ${visibleLine(removed.join(', '))}.`);
  const order = restartsText(restarts);
  const none = rollout === 'live' ? '  Nothing restarts (rollout: live).' : '  Nothing restarts.';
  lines.push(order === '' ? none : `  Restarts${when}, in this order: ${visibleLine(order)}.`);
  if (jobs.length > 0) lines.push(`  Running jobs that${when} end:`, ...jobTable(jobs));
  if (more > 0)
    lines.push(
      `  Running jobs that${when} end, ${jobs.length > 0 ? 'further' : 'of other people'}: ${more}.`,
    );
  if (restart.unknown_jobs) lines.push('  Running jobs may end: which run is not known at the moment.');
  if (!endsJobs(restart)) lines.push('  No running job ends.');
  if (direct && direct.people.length > 0)
    lines.push(
      `  Log in past the gateway until ${direct.until}, also with keys revoked here: ${visibleLine(direct.people.join(', '))}.`,
    );
  return lines.join('\n');
}

function jobTable(jobs: readonly Business['RunningJob'][]): string[] {
  const rows = jobs.map(({ id, user, name, machines }) => [id, user, name, machines.join(',')]);
  return formatTable(['JOB', 'USER', 'NAME', 'MACHINES'], rows)
    .split('\n')
    .map((line) => `    ${line}`);
}
