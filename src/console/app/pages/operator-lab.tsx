/** For operators: the lab file. What applying one would do, and doing it, by the operations that the command line uses. */
import { useMutation } from '@tanstack/react-query';
import { type ChangeEvent, useState } from 'react';
import { bodyOf, business } from '../api.ts';
import { installationTopics, type Lab, type LabPlan } from '../installation.ts';
import { AsCommand } from '../parts/copy.tsx';
import { InstallationNav } from '../parts/installation-nav.tsx';
import { Plan } from '../parts/lab-plan.tsx';
import { Page, Panel, Problem } from '../parts/page.tsx';
import { WriteForm, type WriteHeaders } from '../parts/write.tsx';
import { save } from '../save.ts';
import { holdsStaff, useWho } from '../who.tsx';

/** As much as the operation takes. */
const mostBytes = 8 * 2 ** 20;

interface Planned {
  lab: Lab;
  prune: boolean;
  plan: LabPlan;
  /** Tells this file from another, in place of the file. */
  digest: string;
}

export function OperatorLabPage() {
  const mayApply = holdsStaff(useWho(), 'staff.operate');
  const [text, setText] = useState('');
  const [prune, setPrune] = useState(false);
  const [done, setDone] = useState<LabPlan>();
  const planning = useMutation({ mutationFn: () => plan(text, prune) });
  const change = (next: Change) => {
    // What was planned was another file.
    planning.reset();
    setDone(undefined);
    if (next.text !== undefined) setText(next.text);
    if (next.prune !== undefined) setPrune(next.prune);
  };
  const planned = planning.data;
  return (
    <Page
      title="Lab file"
      sentence="The installation as one file: see what applying it would change, restart and end, then do it."
      actions={
        <button type="button" className="second" onClick={() => void exportLab()}>
          Download the current file
        </button>
      }
    >
      <InstallationNav />
      <Panel
        title="The file"
        tools={
          <AsCommand
            api="Business"
            cli="andromeda admin plan -f lab.yaml"
            operation="POST /operator/lab/plan"
          />
        }
      >
        <FileForm
          text={text}
          prune={prune}
          change={change}
          planning={planning}
          submit={() => {
            setDone(undefined);
            planning.mutate();
          }}
        />
      </Panel>
      {planned && !done && (
        <Panel title="Planned changes">
          <Plan plan={planned.plan} none="Nothing would change." />
          {mayApply && planned.plan.changes.length > 0 && (
            <Apply
              planned={planned}
              onDone={(result) => {
                setDone(result);
                planning.reset();
                setText('');
              }}
              cancel={() => planning.reset()}
            />
          )}
          {!mayApply && <p className="soft">Applying it needs the staff key staff.operate.</p>}
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

function FileForm({
  text,
  prune,
  change,
  planning,
  submit,
}: {
  text: string;
  prune: boolean;
  change: (next: Change) => void;
  planning: { isPending: boolean; error: Error | null };
  submit: () => void;
}) {
  const choose = async ({ target }: ChangeEvent<HTMLInputElement>) => {
    const file = target.files?.[0];
    if (file && file.size <= mostBytes) change({ text: await file.text() });
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (!planning.isPending) submit();
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
      <label className="check">
        <input
          type="checkbox"
          checked={prune}
          onChange={(event) => change({ prune: event.target.checked })}
        />
        <span>
          Prune <span className="soft">remove members, grants and clusters that the file does not list</span>
        </span>
      </label>
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
  const bytes = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
  const digest = [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
  const body = { lab, prune };
  return { lab, prune, digest, plan: bodyOf(await business.POST('/operator/lab/plan', { body })) };
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

function Apply({
  planned: { lab, prune, plan: wanted, digest },
  onDone,
  cancel,
}: {
  planned: Planned;
  onDone: (done: LabPlan) => void;
  cancel: () => void;
}) {
  const count = wanted.changes.length;
  const ended = wanted.restarts.flatMap(({ ended_jobs: jobs }) => jobs).length;
  // What is remembered of a form is no lab file.
  const send = async (_body: { digest: string; prune: boolean }, header: WriteHeaders) =>
    onDone(bodyOf(await business.POST('/operator/lab', { params: { header }, body: { lab, prune } })));
  return (
    <>
      <WriteForm
        write={{ form: 'lab.apply', send, topics: [...installationTopics, 'me'] }}
        body={{ digest, prune }}
        label={`Apply ${count} ${count === 1 ? 'change' : 'changes'}`}
        danger={ended > 0 || wanted.changes.some(({ action }) => action === 'remove')}
        cancel={cancel}
      >
        <p role="status">
          All changes are applied together, or none.
          {ended > 0 && ` ${ended} running ${ended === 1 ? 'job ends' : 'jobs end'}.`}
        </p>
      </WriteForm>
      <AsCommand
        api="Business"
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
