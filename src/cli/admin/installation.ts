/** `andromeda admin problems` and `andromeda admin installation`: what must be mended, and the service's own keys and backups. */
import { type Answer, printer } from '../answer.ts';
import type { Business } from '../net/operations.ts';
import { formatTable } from '../table.ts';
import { reads } from '../verb.ts';

type Installation = Business['Installation'];

const table = printer<Business['Problem']>(
  {
    SINCE: (row) => row.since,
    ABOUT: (row) => [row.about, row.side].filter(Boolean).join(' '),
    WHEN: (row) => row.urgency,
    'NEXT-TRY': (row) => row.next_try_at,
    PROBLEM: (row) => row.message,
    'TO-DO': (row) => row.action,
  },
  'Nothing must be mended.',
);

export const problems = reads({
  usage: 'problems',
  summary: 'what must be mended: clusters, the service and its host, newest first',
  example: 'problems',
  async run({ api }): Promise<Answer> {
    const json = await api.get('/operator/problems');
    return table.many(json, json.problems);
  },
});

export const installation = reads({
  usage: 'installation',
  summary: "the service's own keys and how each is replaced, and its backups",
  example: 'installation',
  formats: ['text', 'json', 'yaml'],
  async run({ api }): Promise<Answer> {
    const json = await api.get('/operator/installation');
    return { json, text: `${describeKeys(json)}\n\n${describeBackup(json)}` };
  },
});

function describeKeys({ keys }: Installation): string {
  const rows = keys.flatMap(({ kind, current, next, previous, next_step: step }) => [
    [kind, 'in use', current.id, current.since],
    ...(next ? [[kind, 'announced', next.id, next.since]] : []),
    ...(previous ? [[kind, 'from before', previous.id, previous.since]] : []),
    [kind, 'next step', step.command, undefined],
  ]);
  return formatTable(['KEY', 'STATE', 'ID', 'SINCE'], rows);
}

function describeBackup({ backup: { schedule, last, kept, failure, drill } }: Installation): string {
  const rows: [string, string | undefined][] = [
    [
      'Backups to',
      schedule ? `${schedule.to}${schedule.encrypted ? ', encrypted' : ''}` : 'none by themselves',
    ],
    ['Last', last && `${last.at}  ${last.file}`],
    ['Kept and read back', kept && `${kept.at}  ${kept.file}`],
    ['Next due', schedule?.due_at],
    ['Failed', failure && `${failure.failures} times, at ${failure.at}: ${failure.message}`],
    ['Rehearsed', drill && `${drill.at}  ${drill.file}${drill.good ? '' : ', and it was not good'}`],
  ];
  return formatTable(['', ''], rows).split('\n').slice(1).join('\n');
}
