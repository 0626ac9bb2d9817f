/** What a lab file, or changes of members, would do, as text for people. */
import { visibleLine, visibleName } from '../domain/text.ts';
import type { Business } from './net/api.ts';
import { formatTable } from './output.ts';

type Plan = Business['LabPlan'];

type MemberPlan = Business['MemberPlan'];

export function isDestructive({ changes, restarts }: Plan): boolean {
  return (
    changes.some(({ action }) => action === 'remove') || restarts.some((one) => one.ended_jobs.length > 0)
  );
}

/** The text of a plan; `nothing` is what to say of an empty one. It is worded for before and after alike. */
export function describePlan({ changes, restarts }: Plan, nothing: string): string {
  if (changes.length === 0 && restarts.length === 0) return nothing;
  const rows = changes.map(({ action, kind, name, details }) => [action, kind, name, details]);
  const table = changes.length === 0 ? [] : [formatTable(['ACTION', 'KIND', 'NAME', 'WHAT'], rows)];
  return [...table, ...restarts.map(onCluster)].join('\n\n');
}

const parts: Record<string, string> = {
  login: 'login nodes',
  controller: 'Slurm controller',
  accounting: 'accounting service',
  compute: 'compute nodes one at a time',
};

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

function onClusterOfMembers(effect: MemberPlan['clusters'][number]): string {
  const { waiting_for_key: waiting, ended_sessions: sessions, kubernetes } = effect;
  const isSlurm = effect.added.length + effect.removed.length > 0;
  const lines = isSlurm ? [onCluster(effect)] : [`On cluster ${visibleName(effect.cluster_name)}:`];
  if (waiting.length > 0)
    lines.push(`  Get a login account when they register a key: ${visibleLine(waiting.join(', '))}.`);
  if (sessions.length > 0) {
    const names = [...new Set(sessions.map(({ username }) => username))].join(', ');
    lines.push(`  Open SSH sessions that end: ${sessions.length} (${visibleLine(names)}).`);
  }
  for (const { username, before, after } of kubernetes)
    lines.push(`  Kubernetes: ${visibleLine(username)} from ${before ?? 'none'} to ${after ?? 'none'}.`);
  return lines.join('\n');
}

function onCluster(restart: Business['LabRestart']): string {
  const { added, removed, rollout, restarts, ended_jobs: jobs } = restart;
  const lines = [`On cluster ${visibleName(restart.cluster_name)}:`];
  if (added.length > 0) lines.push(`  New login accounts: ${visibleLine(added.join(', '))}.`);
  if (removed.length > 0) lines.push(`  Login accounts that go: ${visibleLine(removed.join(', '))}.`);
  const order = restarts.map((part) => parts[part] ?? part).join(', then ');
  const none = rollout === 'live' ? '  Nothing restarts (rollout: live).' : '  Nothing restarts.';
  lines.push(order === '' ? none : `  Restarts, in this order: ${visibleLine(order)}.`);
  if (jobs.length === 0) lines.push('  No running job ends.');
  else lines.push('  Running jobs that end:', ...jobTable(jobs));
  return lines.join('\n');
}

function jobTable(jobs: readonly Business['RunningJob'][]): string[] {
  const rows = jobs.map(({ id, user, name, machines }) => [id, user, name, machines.join(',')]);
  return formatTable(['JOB', 'USER', 'NAME', 'MACHINES'], rows)
    .split('\n')
    .map((line) => `    ${line}`);
}
