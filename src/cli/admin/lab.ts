/** `andromeda admin plan`, `apply` and `export`: the installation as one file. */
import { withLabPaths } from '../../domain/clusters/lab-paths.ts';
import type { Answer } from '../answer.ts';
import { confirm, isAttended } from '../ask.ts';
import { readYaml } from '../files.ts';
import { printMessage } from '../output.ts';
import { describePlan, isDestructive } from '../plan-text.ts';
import { optional, reads, required, writes } from '../verb.ts';
import { fromDirectoryOf } from './cluster.ts';

interface LabOptions {
  file: string;
  prune?: boolean;
}

const flags = [
  required('-f, --file <file>', 'the lab file (YAML), - for standard input'),
  optional('--prune', 'members, grants and clusters that the file leaves out go'),
];

/** What a call is given for this lab file. */
async function read({ file, prune = false }: LabOptions) {
  return { body: { lab: withLabPaths(await readYaml(file), fromDirectoryOf(file)), prune }, about: file };
}

export const plan = reads<LabOptions>({
  usage: 'plan',
  summary: 'show what applying a lab file would change, restart and end',
  example: 'plan -f lab.yaml --prune',
  flags,
  async run({ api, options }): Promise<Answer> {
    const json = await api.ask('/operator/lab/plan', await read(options));
    return { json, text: describePlan(json, 'Nothing would change.') };
  },
});

export const apply = writes<LabOptions & { yes?: true }>({
  usage: 'apply',
  summary: 'bring the installation to a lab file, all of it or nothing',
  example: 'apply -f lab.yaml',
  flags: [...flags, optional('--yes', 'without asking')],
  async run({ api, options }): Promise<Answer> {
    const given = await read(options);
    // Where a person can answer, they see what would be lost.
    if (!options.yes && isAttended()) {
      const planned = await api.ask('/operator/lab/plan', given);
      if (isDestructive(planned)) {
        printMessage(`${describePlan(planned, '')}\n`);
        await confirm('Go on?');
      }
    }
    const json = await api.post('/operator/lab', given);
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
