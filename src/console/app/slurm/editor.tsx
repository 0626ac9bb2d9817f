/** The configuration in the editor: what is wrong where, what saving does, and what to do where another person saved first. */
import { useEffect, useMemo, useRef, useState } from 'react';
import { bodyOf, platform, queryClient, type WriteHeaders } from '../api.ts';
import { Button } from '../parts/controls.tsx';
import { Panel, Problem } from '../parts/page.tsx';
import { WriteForm } from '../parts/write.tsx';
import { useWho } from '../who.tsx';
import { CodeView } from './code-view.tsx';
import { Conflict } from './conflict.tsx';
import { Consequences } from './consequences.tsx';
import { type Draft, type Editing, useDraft } from './editing.ts';
import { generationOf, readStored, type Stored, useCheck, type Version } from './reads.ts';
import { type Configuration, type Fault, isSame, parseConfiguration } from './text.ts';

/** A configuration of the history that is put into the editor. */
export interface Restored {
  text: string;
  generation: number;
}

const hint = `slurmPartitions: |
  PartitionName=gpu Nodes=ALL Default=YES
slurmExtraConfig: |
  MaxArraySize=2000`;

interface EditorOptions {
  cluster: { id: string; name: string };
  stored: Stored;
  versions: readonly Version[];
  isInService: boolean;
  /** Until it is saved. */
  restored: Restored | undefined;
  onSaved: () => void;
}

export function Editor({ cluster, stored, versions, isInService, restored, onSaved }: EditorOptions) {
  const { me, orgID } = useWho();
  const editing = useDraft(me.user.id, cluster.id, stored);
  const { code, text, storedText, draft } = editing;
  const [showsDifference, setShowsDifference] = useState(false);
  const showDifference = () => setShowsDifference(true);
  useRestoring(restored, editing, stored, showDifference);
  const judged = useJudgement(cluster.id, stored, isInService, editing);
  const { parsed, isConflict, error, faults } = judged;
  const form = useRef<HTMLDivElement>(null);
  const done = () => {
    onSaved();
    setShowsDifference(false);
  };
  const about = { clusterId: cluster.id, stored, editing, versions, mine: parsed.configuration };
  return (
    <Panel
      title="Configuration"
      cli={`andromeda slurm-config edit ${cluster.name}`}
      operation={`PUT /clusters/${cluster.id}/scheduler-configuration?businessOrgId=${orgID}`}
    >
      {isConflict && draft && <Conflict {...about} draft={draft} show={showDifference} />}
      <Bar {...{ editing, stored, showsDifference, setShowsDifference }} />
      <CodeView
        code={code}
        label={`Slurm configuration of ${cluster.name}, as YAML`}
        text={text}
        hint={hint}
        isReadOnly={!isInService}
        original={showsDifference ? storedText : undefined}
        faults={faults}
        onChange={editing.typed}
        onSave={() => form.current?.querySelector('input')?.focus()}
      />
      <Faults faults={faults} text={text} goTo={(at) => code.current?.goTo(at)} />
      {error && <Problem error={error} />}
      <Hint isInService={isInService} />
      {isInService && draft && (
        <div ref={form}>
          <Save key={restored?.generation} {...{ cluster, judged, draft, editing, restored, done }} />
        </div>
      )}
    </Panel>
  );
}

/** Puts what was chosen of the history into the editor. */
function useRestoring(
  restored: Restored | undefined,
  editing: Editing,
  stored: Stored,
  onRestore: () => void,
): void {
  // biome-ignore lint/correctness/useExhaustiveDependencies: once for each that is chosen
  useEffect(() => {
    if (!restored) return;
    editing.replace(restored.text, stored.generation);
    onRestore();
    editing.code.current?.goTo(0);
  }, [restored]);
}

/** What is wrong with the draft, and whether another version was saved since it was begun. */
function useJudgement(clusterId: string, stored: Stored, isInService: boolean, editing: Editing) {
  const { orgID } = useWho();
  const { text, draft } = editing;
  const parsed = useMemo(() => parseConfiguration(text), [text]);
  const { configuration } = parsed;
  const isOverrun = draft !== undefined && draft.base !== stored.generation;
  // It was saved, and no answer said so; or another person saved the same.
  const isThere = isOverrun && configuration !== undefined && isSame(configuration, stored.configuration);
  // biome-ignore lint/correctness/useExhaustiveDependencies: when that becomes so
  useEffect(() => {
    if (isThere) editing.saved(text, stored);
  }, [isThere]);
  const checked = isInService && draft ? configuration : undefined;
  const { check, error } = useCheck(clusterId, orgID, checked, stored.generation);
  const faults = useMemo(() => {
    const found = (check?.faults ?? []).map(({ field, file, message }) => ({
      ...parsed.rangeFor(field, file),
      message,
    }));
    return [...parsed.faults, ...found];
  }, [parsed, check]);
  return { parsed, isConflict: isOverrun && !isThere, check, error, faults };
}

function Hint({ isInService }: { isInService: boolean }) {
  if (!isInService) return <p className="soft small">Read-only: the cluster is not in service.</p>;
  return (
    <p className="soft small">
      YAML, as <code>andromeda slurm-config get</code> prints it. Fields that are left out are cleared;
      comments outside of the texts are not kept. Tab leaves the editor, Ctrl/⌘ S goes to the reason, Ctrl/⌘ F
      finds.
    </p>
  );
}

interface BarOptions {
  editing: Editing;
  stored: Stored;
  showsDifference: boolean;
  setShowsDifference: (shows: boolean) => void;
}

function Bar({ editing, stored, showsDifference, setShowsDifference }: BarOptions) {
  const { draft, replaced, isUnkept, storedText, replace } = editing;
  return (
    <div className="code-bar">
      <span role="status">
        {draft ? `Changed from version ${draft.base}, not saved.` : `Version ${stored.generation}, current.`}
        {draft && !isUnkept && <span className="soft"> Kept in this tab.</span>}
        {isUnkept && <b> It is too large to keep in this tab: do not reload the page.</b>}
      </span>
      <span className="tools">
        {draft && (
          <label className="check">
            <input
              type="checkbox"
              checked={showsDifference}
              onChange={(event) => setShowsDifference(event.target.checked)}
            />
            Show changes
          </label>
        )}
        {draft && (
          <Button className="link small" onClick={() => replace(storedText, stored.generation)}>
            Discard
          </Button>
        )}
        {replaced !== undefined && (
          <Button className="link small" onClick={() => replace(replaced, draft?.base ?? stored.generation)}>
            Restore the previous text
          </Button>
        )}
      </span>
    </div>
  );
}

const mostListed = 10;

interface FaultsOptions {
  faults: readonly Fault[];
  text: string;
  goTo: (position: number) => void;
}

function Faults({ faults, text, goTo }: FaultsOptions) {
  const lineOf = (position: number) => text.slice(0, position).split('\n').length;
  return (
    <div role="status" className="code-faults">
      {faults.length > 0 && (
        <p className="fault">{faults.length === 1 ? 'One problem:' : `${faults.length} problems:`}</p>
      )}
      <ul>
        {faults.slice(0, mostListed).map(({ from, message }) => (
          <li key={`${from} ${message}`}>
            <Button className="link small" onClick={() => goTo(from)}>
              Line {lineOf(from)}
            </Button>{' '}
            <span>{message}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

interface SaveOptions {
  cluster: { id: string };
  judged: ReturnType<typeof useJudgement>;
  draft: Draft;
  editing: Editing;
  restored: Restored | undefined;
  done: () => void;
}

function Save({ cluster, judged, draft, editing, restored, done }: SaveOptions) {
  const { orgID } = useWho();
  const { parsed, isConflict, check, faults } = judged;
  const isSound = faults.length === 0;
  const body = isSound && !isConflict && check ? parsed.configuration : undefined;
  const send = async (configuration: Configuration, headers: WriteHeaders) => {
    const params = {
      path: { clusterId: cluster.id },
      query: { businessOrgId: orgID },
      header: { ...headers, 'If-Match': `"${draft.base}"` },
    };
    const answer = await platform
      .PUT('/clusters/{clusterId}/scheduler-configuration', { params, body: configuration })
      .finally(() => void queryClient.invalidateQueries({ queryKey: ['slurm', cluster.id, 'stored'] }));
    const stored = { configuration: bodyOf(answer), generation: generationOf(answer.response) };
    queryClient.setQueryData(readStored(cluster.id, orgID).queryKey, stored);
    editing.saved(draft.text, stored);
  };
  return (
    <>
      <Consequences check={isSound ? check : undefined} hasFaults={!isSound} />
      <WriteForm
        operation={{ name: `PUT /clusters/${cluster.id}/scheduler-configuration`, send }}
        topics={[`cluster/${cluster.id}`]}
        onDone={done}
        body={body}
        label="Save and test"
        isWaiting={body === undefined}
        usualReason={restored ? `Restores version ${restored.generation}` : ''}
      />
    </>
  );
}
