/** The lab file's `slurm.accounting` section: the limits of people's accounts in Slurm's accounting. */
import { present } from '../present.ts';

/** Limits of a Slurm association, in Slurm's terms; an absent one stays as the site has set it. */
export interface SlurmLimits {
  fairshare?: number;
  defaultQos?: string;
  qos?: string[];
  maxJobs?: number;
  /** The limit for all jobs together, by `gpu`, `cpu`, `mem` (MiB), `node` or another TRES of Slurm's. */
  grpTres?: Record<string, number>;
}

export interface SlurmAccounting extends SlurmLimits {
  /** Absent: the organization's slug. An account that exists already keeps its settings. */
  account?: string;
  /** The parent of a newly made account. */
  parent?: string;
  /** Limits of people with `clusters.ssh.admin`, in place of the account's. */
  roles?: { admin?: SlurmLimits };
  coordinators?: 'admins';
}

export function limitsOf({
  fairshare,
  defaultQos,
  qos,
  maxJobs,
  grpTres,
}: SlurmLimits): Record<string, string> {
  const tres = Object.entries(grpTres ?? {}).map(
    ([name, count]) => `${name === 'gpu' ? 'gres/gpu' : name}=${count}`,
  );
  const texts = { Fairshare: fairshare, DefaultQOS: defaultQos, QOS: qos?.join(','), MaxJobs: maxJobs };
  return Object.fromEntries(
    Object.entries({ ...texts, GrpTRES: tres.join(',') || undefined }).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, `${value}`]],
    ),
  );
}

export function accountingChange(before?: SlurmAccounting, after?: SlurmAccounting): string | undefined {
  const valuesOf = ({ account, parent, roles, coordinators, ...limits }: SlurmAccounting = {}) => {
    const ofAdmins = Object.entries(limitsOf(roles?.admin ?? {})).map(([name, value]) => [
      `admins' ${name}`,
      value,
    ]);
    return new Map(
      Object.entries({
        ...present({ account, parent, coordinators }),
        ...limitsOf(limits),
        ...Object.fromEntries(ofAdmins),
      }),
    );
  };
  const [old, wanted] = [valuesOf(before), valuesOf(after)];
  const changes = [...new Set([...old.keys(), ...wanted.keys()])]
    .filter((name) => old.get(name) !== wanted.get(name))
    .map((name) => `${name} ${old.get(name) ?? 'unset'} → ${wanted.get(name) ?? 'unset'}`);
  return changes.length === 0 ? undefined : `Slurm account: ${changes.join(', ')}`;
}
