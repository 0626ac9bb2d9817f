/** For operators: the lab file. What applying one would do, and doing it, by the operations that the command line uses. */
import { useMutation } from '@tanstack/react-query';
import { type ChangeEvent, useState } from 'react';
import { bodyOf, business, operation } from '../api.ts';
import { AsCommand, Button, Check, Page, Panel, Problem } from '../parts/page.tsx';
import { save } from '../parts/save.tsx';
import { Table } from '../parts/table.tsx';
import { count, type Kind, State } from '../parts/values.tsx';
import { WriteForm } from '../parts/write.tsx';
import { holdsStaff, installationTopics, type Lab, type LabPlan, useWho } from '../reads.ts';

/** As much as the operation takes. */
const mostBytes = 8 * 2 ** 20;

interface Planned {
  lab: Lab;
  prune: boolean;
  plan: LabPlan;
}

export default function OperatorLabPage() {
  const [text, setText] = useState('');
  const [prune, setPrune] = useState(false);
  const [done, setDone] = useState<LabPlan>();
  const planning = useMutation({ mutationFn: () => plan(text, prune), onMutate: () => setDone(undefined) });
  const planned = planning.data;
  const change = (next: Change) => {
    // What was planned was another file.
    planning.reset();
    setDone(undefined);
    if (next.text !== undefined) setText(next.text);
    if (next.prune !== undefined) setPrune(next.prune);
  };
  const finish = (result: LabPlan) => {
    change({ text: '' });
    setDone(result);
  };
  return (
    <Page
      title="Lab file"
      sentence="The installation as one file: see what applying it would change, restart and end, then do it."
      actions={
        <Button className="second" onClick={() => void exportLab()}>
          Download the current file
        </Button>
      }
    >
      <Panel title="The file" cli="andromeda admin plan -f lab.yaml" operation="POST /operator/lab/plan">
        <FileForm text={text} prune={prune} change={change} planning={planning} />
      </Panel>
      {planned && !done && (
        <Panel title="Planned changes">
          <Plan plan={planned.plan} none="Nothing would change." />
          <Apply planned={planned} onDone={finish} cancel={() => planning.reset()} />
        </Panel>
      )}
      {done && (
        <Panel title="Applied">
          <Plan plan={done} none="Nothing was left to change." />
        </Panel>
      )}
    </Page>
  );
}

interface Change {
  text?: string;
  prune?: boolean;
}

interface FileOptions {
  text: string;
  prune: boolean;
  change: (next: Change) => void;
  planning: { isPending: boolean; error: Error | null; mutate: () => void };
}

function FileForm({ text, prune, change, planning }: FileOptions) {
  const choose = async ({ target }: ChangeEvent<HTMLInputElement>) => {
    const file = target.files?.[0];
    if (file && file.size <= mostBytes) change({ text: await file.text() });
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (!planning.isPending) planning.mutate();
      }}
    >
      <label htmlFor="lab-file">Choose a file</label>
      <input id="lab-file" type="file" accept=".yaml,.yml,.json" onChange={(event) => void choose(event)} />
      <label htmlFor="lab">
        Or paste it <span className="soft">(YAML; paths in it are absolute, on the host of the service)</span>
      </label>
      <textarea
        id="lab"
        rows={12}
        spellCheck={false}
        autoComplete="off"
        value={text}
        required
        maxLength={mostBytes}
        onChange={(event) => change({ text: event.target.value })}
      />
      <Check
        isOn={prune}
        onChange={(isOn) => change({ prune: isOn })}
        hint="remove members, grants and clusters that the file does not list"
      >
        Prune
      </Check>
      {planning.error && <Problem error={planning.error} />}
      <div className="buttons">
        <button type="submit" aria-disabled={planning.isPending}>
          {planning.isPending ? 'Planning…' : 'Show the plan'}
        </button>
      </div>
    </form>
  );
}

/** The file is read here, by the reader that the command line has. Throws an error that says what is wrong with it. */
async function plan(text: string, prune: boolean): Promise<Planned> {
  const { parse } = await import('yaml');
  const lab = readLab(() => parse(text));
  const body = { lab, prune };
  return { lab, prune, plan: bodyOf(await business.POST('/operator/lab/plan', { body })) };
}

function readLab(parse: () => unknown): Lab {
  let lab: unknown;
  try {
    lab = parse();
  } catch (error) {
    // Its first line says where; the lines after it repeat the file, which may hold what is not to be shown.
    const [first = ''] = String((error as Error).message).split('\n');
    throw new Error(`Not valid YAML: ${first}`);
  }
  if (typeof lab !== 'object' || lab === null || Array.isArray(lab))
    throw new Error('A lab file has sections, such as `organizations:`.');
  return lab as Lab;
}

interface ApplyOptions {
  planned: Planned;
  onDone: (done: LabPlan) => void;
  cancel: () => void;
}

function Apply({ planned: { lab, prune, plan }, onDone, cancel }: ApplyOptions) {
  const { changes, restarts } = plan;
  const ended = restarts.flatMap(({ ended_jobs: jobs }) => jobs).length;
  const isEnding = ended > 0 || restarts.some((one) => one.unknown_jobs);
  if (!holdsStaff(useWho(), 'staff.operate'))
    return <p className="soft">Applying it needs the staff key staff.operate.</p>;
  if (changes.length === 0) return null;
  return (
    <>
      <WriteForm
        operation={operation('post', '/operator/lab', {})}
        topics={[...installationTopics, 'me']}
        onDone={onDone}
        body={{ lab, prune }}
        label={`Apply ${count(changes.length, 'change')}`}
        danger={isEnding || changes.some(({ action }) => action === 'remove')}
        cancel={cancel}
      >
        <p role="status">
          All changes are applied together, or none.
          {ended > 0 && ` ${count(ended, 'running job ends', 'running jobs end')}.`}
        </p>
      </WriteForm>
      <AsCommand
        cli={`andromeda admin apply -f lab.yaml${prune ? ' --prune' : ''} --reason '…'`}
        operation="POST /operator/lab"
      />
    </>
  );
}

async function exportLab(): Promise<void> {
  const [lab, { stringify }] = await Promise.all([
    business.GET('/operator/lab').then(bodyOf),
    import('yaml'),
  ]);
  save('lab.yaml', 'application/yaml', stringify(lab));
}
type Restart = LabPlan['restarts'][number];

const actions: Record<LabPlan['changes'][number]['action'], { kind: Kind; word: string }> = {
  create: { kind: 'good', word: 'Create' },
  update: { kind: 'busy', word: 'Change' },
  remove: { kind: 'bad', word: 'Remove' },
};

function Plan({ plan: { changes, restarts }, none }: { plan: LabPlan; none: string }) {
  if (changes.length === 0) return <p>{none}</p>;
  return (
    <>
      <Table
        name="changes"
        rows={changes}
        id={({ action, kind, name }) => `${action} ${kind} ${name}`}
        text={({ action, kind, name, details }) => `${action} ${kind} ${name} ${details}`}
        columns={[
          {
            name: 'Change',
            cell: ({ action }) => <State kind={actions[action].kind}>{actions[action].word}</State>,
          },
          { name: 'What', cell: ({ kind }) => kind },
          { name: 'Name', cell: ({ name }) => <span className="long">{name}</span> },
          { name: 'Details', cell: ({ details }) => <span className="long">{details}</span> },
        ]}
      />
      {restarts.length > 0 && <h3>Effect on clusters</h3>}
      <ul className="plain">
        {restarts.map((one) => (
          <li key={one.cluster_id}>
            <b>{one.cluster_name}</b>: {describe(one)}
          </li>
        ))}
      </ul>
    </>
  );
}

function describe(restart: Restart): string {
  const { added, removed, restarts, rollout, ended_jobs: jobs } = restart;
  const parts = [
    added.length > 0 ? `accounts added: ${added.join(', ')}` : '',
    removed.length > 0 ? `accounts removed: ${removed.join(', ')}` : '',
    rollout === 'live' || restarts.length === 0 ? 'nothing restarts' : `restarts ${restarts.join(', ')}`,
    restart.unknown_jobs ? 'running jobs may end, and which run is not known' : '',
    jobs.length > 0 ? `jobs end: ${jobs.map(({ id, user }) => `${id} of ${user}`).join(', ')}` : '',
  ];
  return `${parts.filter((part) => part !== '').join('; ')}.`;
}
