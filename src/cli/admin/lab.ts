/** `andromeda admin plan`, `apply` and `export`: the installation as one file. */
import { withLabPaths } from '../../domain/clusters/lab-paths.ts';
import type { Answer } from '../answer.ts';
import { confirm, isAttended } from '../ask.ts';
import type { Reader } from '../net/api.ts';
import type { Business } from '../net/operations.ts';
import { printMessage } from '../output.ts';
import { describePlan, isDestructive } from '../plan-text.ts';
import { optional, reads, required, writes } from '../verb.ts';
import { readYaml } from '../yaml-file.ts';
import { fromDirectoryOf } from './cluster.ts';

interface LabOptions {
  file: string;
  prune?: true;
}

interface LabRequest {
  lab: object;
  prune: boolean;
}

const flags = [
  required('-f, --file <file>', 'the lab file (YAML), - for standard input'),
  optional('--prune', 'members, grants and clusters that the file leaves out go'),
];

async function read({ file, prune }: LabOptions): Promise<LabRequest> {
  return { lab: withLabPaths(await readYaml(file), fromDirectoryOf(file)), prune: prune ?? false };
}

function planOf(api: Reader, body: LabRequest, file: string): Promise<Business['LabPlan']> {
  return api.ask('/operator/lab/plan', { body, about: file });
}

/** Where a person can answer, shows what would be lost and asks. */
async function confirmLoss(api: Reader, body: LabRequest, file: string): Promise<void> {
  if (!isAttended()) return;
  const planned = await planOf(api, body, file);
  if (!isDestructive(planned)) return;
  printMessage(`${describePlan(planned, '')}\n`);
  await confirm('Go on?');
}

export const plan = reads<LabOptions>({
  usage: 'plan',
  summary: 'show what applying a lab file would change, restart and end',
  example: 'plan -f lab.yaml --prune',
  flags,
  async run({ api, options }): Promise<Answer> {
    const json = await planOf(api, await read(options), options.file);
    return { json, text: describePlan(json, 'Nothing would change.') };
  },
});

export const apply = writes<LabOptions & { yes?: true }>({
  usage: 'apply',
  summary: 'bring the installation to a lab file, all of it or nothing',
  example: 'apply -f lab.yaml',
  flags: [...flags, optional('--yes', 'without asking')],
  async run({ api, options }): Promise<Answer> {
    const body = await read(options);
    if (!options.yes) await confirmLoss(api, body, options.file);
    const json = await api.post('/operator/lab', { body, about: options.file });
    return { json, text: describePlan(json, 'Nothing to change.') };
  },
});

export const exportLab = reads({
  usage: 'export',
  summary: 'print the installation as a lab file, which apply takes',
  example: 'export > lab.yaml',
  formats: ['yaml', 'json'],
  async run({ api }): Promise<Answer> {
    const json = await api.get('/operator/lab');
    return { json, text: '' };
  },
});
