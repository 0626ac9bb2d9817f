/** For operators: the accounts that a Slurm cluster's hosts have, what adopting them means, and a lab file of it. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { components } from '../../../api/generated/business.ts';
import { headOfLab, labOfSurvey } from '../../../domain/slurm/survey-lab.ts';
import { verdictTexts } from '../../../domain/slurm/survey-person.ts';
import { bodyOf, business } from '../api.ts';
import { Button, Empty, Field, Loaded, Panel } from '../parts/page.tsx';
import { SaveButton, save } from '../parts/save.tsx';
import { type Column, Table, Two } from '../parts/table.tsx';
import { count, Text } from '../parts/values.tsx';
import { of } from '../reads.ts';

type Survey = components['schemas']['ClusterSurvey'];
type Person = Survey['people'][number];

export function SurveyPanel({ clusterID, name }: { clusterID: string; name: string }) {
  const [isAsked, setAsked] = useState(false);
  const survey = useQuery({
    queryKey: ['operator', 'survey', clusterID],
    queryFn: async () =>
      bodyOf(
        await business.POST('/operator/clusters/{clusterID}/survey', { ...of({ clusterID }), body: {} }),
      ),
    enabled: isAsked,
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });
  const again = () => (isAsked ? void survey.refetch() : setAsked(true));
  return (
    <Panel
      title={`Accounts on the hosts of ${name}`}
      cli={`andromeda admin cluster survey ${name}`}
      operation={`POST /operator/clusters/${clusterID}/survey`}
    >
      <p>
        Asks every host which accounts it has, before or after people are adopted. It only reads.{' '}
        <Button className="second small" disabled={survey.isFetching} onClick={again}>
          {survey.isFetching ? 'Asking…' : 'Survey'}
        </Button>
      </p>
      {isAsked && <Loaded of={survey}>{(data) => <Found survey={data} />}</Loaded>}
    </Panel>
  );
}

function Found({ survey }: { survey: Survey }) {
  const { notices, people } = survey;
  return (
    <>
      <ul>
        {notices.map((line) => (
          <li key={line}>
            <Text of={line} />
          </li>
        ))}
      </ul>
      <Table
        name="accounts"
        rows={people}
        id={({ username }) => username}
        text={(one) => `${one.username} ${one.name} ${verdictTexts[one.verdict]} ${one.reasons.join(' ')}`}
        columns={columns}
        none={<Empty>The hosts have no accounts of people.</Empty>}
      />
      <LabFile survey={survey} />
    </>
  );
}

const columns: Column<Person>[] = [
  {
    name: 'Username',
    cell: (one) => <Two first={<Text of={one.username} />} second={<Text of={one.name} />} />,
  },
  { name: 'UID', isNumber: true, cell: (one) => one.uid },
  { name: 'Group', cell: (one) => <Text of={one.group} /> },
  { name: 'Keys', isNumber: true, cell: (one) => one.keys.length },
  { name: 'Jobs', isNumber: true, cell: ({ slurm }) => slurm.running + slurm.pending },
  { name: 'Logins', isNumber: true, cell: (one) => one.logins.reduce((sum, { times }) => sum + times, 0) },
  {
    name: 'Verdict',
    cell: (one) => (
      <Two
        first={verdictTexts[one.verdict]}
        second={<Text of={[...one.reasons, ...one.commands].join('; ')} />}
      />
    ),
  },
];

function LabFile({ survey }: { survey: Survey }) {
  const [pattern, setPattern] = useState('');
  const file = `${survey.cluster}.people.yaml`;
  const run = async (say: (text: string) => void) => {
    const { lab, open } = labOfSurvey(survey, { known: new Map(), pattern: pattern || undefined });
    const { stringify } = await import('yaml');
    save(file, 'application/yaml', headOfLab(survey, open, file), stringify(lab, { lineWidth: 0 }));
    const members = lab.organizations?.[0]?.members?.length ?? 0;
    say(`${count(members, 'member')}; the first lines say what is left to decide (${open.length}).`);
  };
  return (
    <p>
      <Field
        id="addresses"
        label="Addresses for the lab file"
        hint="{username}@lab.example"
        value={pattern}
        onChange={setPattern}
      />{' '}
      <SaveButton label="Save the lab file" isDisabled={!pattern.includes('{username}')} run={run} />
    </p>
  );
}
