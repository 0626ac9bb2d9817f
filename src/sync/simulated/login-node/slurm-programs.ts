/**
 * Simulated Slurm commands of a login node, enough to list one's running jobs and to log in to them (`gateway/ssh/job/enter-
 * script.ts`): a job step runs on the login node itself.
 */
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RunningJob } from '../../../domain/access/manifest.ts';
import { writeWhole } from '../../../lib/whole-file.ts';

/** Directory in the homes' directory that every account can read. */
const directory = '.slurm';

/** Each reads `jobs`, one line for each job: ID, user, node, GPUs, name. $USER stands in for an account without a name. */
const programs = {
  squeue: `
user= job= format= head=yes
while [ $# -gt 0 ]; do
  case $1 in
    -u) user=$USER; shift ;; --me) user=$USER ;;
    -h) head= ;; -j) job=$2; shift ;; -o) format=$2; shift ;; -t | -S) shift ;;
  esac
  shift
done
[ -z "$head" ] || printf '%8s %-16s %-10s %s\\n' JOBID NAME USER NODELIST
while IFS='|' read -r id owner node gpus name; do
  case $user in '' | "$owner") ;; *) continue ;; esac
  case $job in '' | "$id") ;; *) continue ;; esac
  case $format in
    '') printf '%8s %-16s %-10s %s\\n' "$id" "$name" "$owner" "$node" ;;
    *) printf '%s|%s|N/A|%s|%s\\n' "$id" "$id" "$node" "$name" ;;
  esac
done < "$jobs"
`,
  scontrol: `
case "$*" in
  'show hostnames '*) echo "$3" ;;
  *'show job '*)
    for id; do :; done
    if grep -q "^$id|" "$jobs"; then state=RUNNING; else state=CANCELLED; fi
    echo "JobId=$id JobState=$state" ;;
  *) echo 'This cluster is simulated: its scontrol shows the running jobs, and no more.' >&2; exit 1 ;;
esac
`,
  srun: `
id=
while [ $# -gt 0 ]; do
  case $1 in --jobid=*) id=\${1#*=} ;; -*) ;; *) break ;; esac
  shift
done
IFS='|' read -r found owner node gpus name <<END
$(grep "^$id|$USER|" "$jobs")
END
[ -n "$id" ] && [ -n "$found" ] || { echo 'This cluster is simulated, and starts no jobs.' >&2; exit 1; }
id "$USER" > /dev/null 2>&1 ||
  { echo "andromeda-job refused A simulated job takes a service that was started as root." >&2; exit 1; }
export SLURM_JOB_ID="$id" SLURM_JOB_NAME="$name" SLURM_JOB_NODELIST="$node" SLURMD_NODENAME="$node"
export CUDA_VISIBLE_DEVICES="$gpus"
exec 3<&0
setsid "$@" <&3 3<&- &
step=$!
trap 'kill -- -$step' HUP TERM
while kill -0 $step 2> /dev/null; do
  # Slurm ends the steps of a job that ends.
  grep -q "^$id|$USER|" "$jobs" || kill -- -$step
  sleep 0.5
done
wait $step
`,
};

/** The directory of the programs, for the search path of sessions. */
export function slurmDirectory(homes: string): string {
  return join(homes, directory);
}

export function writeSlurmPrograms(homes: string): void {
  const own = makeDirectory(homes);
  for (const [name, script] of Object.entries(programs)) {
    const file = join(own, name);
    writeFileSync(file, `#!/bin/sh\njobs=\${0%/*}/jobs\n${script}`);
    chmodSync(file, 0o755);
  }
}

function makeDirectory(homes: string): string {
  const own = slurmDirectory(homes);
  mkdirSync(own, { recursive: true, mode: 0o711 });
  chmodSync(own, 0o755);
  return own;
}

/** Writes the list of running jobs; each has all GPUs of its node. */
export function writeJobs(homes: string, jobs: readonly RunningJob[], gpusPerNode: number): void {
  const gpus = Array.from({ length: gpusPerNode }, (_, index) => index).join(',');
  const lines = jobs.map(({ id, user, name, machines }) =>
    [id, user, machines[0], gpus, name].join('|').replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]/gu, ' '),
  );
  const text = lines.map((line) => `${line}\n`).join('');
  const file = join(makeDirectory(homes), 'jobs');
  if (!existsSync(file) || readFileSync(file, 'utf8') !== text) writeWhole(file, text, 0o644);
}
