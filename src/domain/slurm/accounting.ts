/** The lab file's `slurm.accounting` section: what people's account in Slurm's accounting is like. */
import { present } from '../present.ts';

/** Values of an association, in Slurm's terms; left out: the site's own. */
export interface SlurmLimits {
  fairshare?: number;
  defaultQos?: string;
  qos?: string[];
  maxJobs?: number;
  /** All together, by `gpu`, `cpu`, `mem` (MiB), `node` or another resource of Slurm's. */
  grpTres?: Record<string, number>;
}

export interface SlurmAccounting extends SlurmLimits {
  /** Left out: the organization's slug. One that is there already keeps what it has. */
  account?: string;
  /** The account that a new one is below. */
  parent?: string;
  /** Of people with `clusters.ssh.admin`, in place of the account's. */
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
