/** `andromeda admin cluster survey`: which accounts a cluster has, what that means for adopting them, and a lab file of it. */
import {
  type Addresses,
  headOfLab,
  type KnownPerson,
  labOfSurvey,
  readPeople,
} from '../../domain/slurm/survey-lab.ts';
import { verdictTexts } from '../../domain/slurm/survey-person.ts';
import { visibleLine } from '../../domain/text.ts';
import { messageOf } from '../../lib/error-message.ts';
import { failure, usage } from '../exit.ts';
import { formatYaml, readInput, writeAtomically } from '../files.ts';
import type { Business, Reader } from '../net/api.ts';
import { type Answer, csvText, formatTable } from '../output.ts';
import { optional, reads, type Verb } from '../verb.ts';

type Survey = Business['ClusterSurvey'];
type Person = Survey['people'][number];

interface SurveyOptions {
  lab?: string;
  people?: string;
  addresses?: string;
  output?: string;
}

/** A survey may wait for hosts that hang. */
const surveyMs = 600_000;

export function surveyVerb(
  findCluster: (api: Reader, name: string) => Promise<{ cluster: { id: string } }>,
): Verb {
  return reads<SurveyOptions>({
    usage: 'survey <name>',
    summary: 'see which accounts a Slurm cluster has, before anything is changed there',
    example: 'cluster survey alpha --people people.csv --lab alpha.yaml',
    flags: [
      optional('--lab <file>', "write the organization's part of a lab file, with their numbers and keys"),
      optional('--people <file>', 'their addresses: login,email,name (CSV)'),
      optional('--addresses <pattern>', 'the address of who is not in that list: {username}@lab.example'),
    ],
    formats: ['table', 'json', 'csv'],
    async run({ api, options: { lab, people, addresses: pattern, output } }, name = '') {
      if (pattern !== undefined && !/^[^@]*\{username\}[^@]*@[^@]+$/.test(pattern))
        throw usage(`'${pattern}' is not an address with {username} in it.`);
      const known = people === undefined ? new Map<string, KnownPerson>() : await readList(people);
      const path = { clusterID: (await findCluster(api, name)).cluster.id };
      const body = { names: [...known.keys()] };
      const json = await api.ask('/operator/clusters/{clusterID}/survey', {
        path,
        body,
        timeoutMs: surveyMs,
      });
      const message = lab === undefined ? {} : { message: await writeLab(lab, json, { known, pattern }) };
      return { ...(output === 'csv' ? { json, text: csvOf(json) } : describeSurvey(json)), ...message };
    },
  });
}

async function readList(file: string): Promise<Map<string, KnownPerson>> {
  const text = await readInput(file);
  try {
    return readPeople(text);
  } catch (error) {
    throw failure(`${file}: ${messageOf(error)}.`);
  }
}

async function writeLab(file: string, survey: Survey, addresses: Addresses): Promise<string> {
  const { lab, open } = labOfSurvey(survey, addresses);
  await writeAtomically(
    file,
    `${headOfLab(survey, open, file)}${await formatYaml(lab)}\n`,
    `${file} cannot be written`,
  );
  const count = lab.organizations?.[0]?.members?.length ?? 0;
  const rest = open.length === 0 ? '' : `; its first lines say what is left to decide (${open.length})`;
  return `${file} has ${count} of ${survey.people.length} accounts${rest}.`;
}

function describeSurvey(json: Survey): Answer {
  const rows = json.people.map((person) => [
    person.username,
    person.uid,
    person.group,
    person.keys.length,
    `${person.slurm.running}+${person.slurm.pending}`,
    person.logins.reduce((sum, { times }) => sum + times, 0),
    verdictOf(person),
  ]);
  const heading = ['USERNAME', 'UID', 'GROUP', 'KEYS', 'JOBS', 'LOGINS', 'VERDICT'];
  const table = rows.length === 0 ? 'There are no accounts of people.' : formatTable(heading, rows);
  const commands = json.people.flatMap((person) => person.commands);
  const mend = commands.length === 0 ? [] : ['', 'What would mend that; nothing was run:', ...commands];
  const text = [...json.notices, ...(json.notices.length > 0 ? [''] : []), table, ...mend];
  return {
    json,
    text: text
      .flatMap((lines) => lines.split('\n'))
      .map(lineOf)
      .join('\n'),
  };
}

const lineOf = (line: string) => (line === '' ? '' : visibleLine(line));

function verdictOf({ verdict, reasons }: Person): string {
  return [verdictTexts[verdict], reasons.join('; ')].filter(Boolean).join(': ');
}

/** The fields of the answer in their order, those of a nested object each by itself. */
function csvOf({ people }: Survey): string {
  const cells = people.map(({ home, slurm, keys, others, logins, ...person }) => ({
    ...person,
    ...Object.fromEntries(Object.entries(home).map(([name, value]) => [`home_${name}`, value])),
    ...Object.fromEntries(Object.entries(slurm).map(([name, value]) => [`slurm_${name}`, value])),
    keys: keys.map(({ fingerprint }) => fingerprint),
    other_keys: others.map(({ fingerprint, reason }) => `${fingerprint} ${reason}`),
    logins: logins.map(({ host, from, last }) => `${last} ${from} ${host}`),
  }));
  const rows = cells.map((row) => Object.values(row).map((value) => [value ?? ''].flat().join('; ')));
  return csvText([Object.keys(cells[0] ?? {}), ...rows]);
}
