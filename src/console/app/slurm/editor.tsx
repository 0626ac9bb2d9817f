/** The configuration in the editor: what is wrong where, what saving does, and what to do where another person saved first. */
import { useQuery } from '@tanstack/react-query';
import { useEffect, useMemo, useRef, useState } from 'react';
import { bodyOf, platform, queryClient, type WriteHeaders } from '../api.ts';
import { Button, Check } from '../parts/controls.tsx';
import { Panel, Problem } from '../parts/page.tsx';
import { WriteForm } from '../parts/write.tsx';
import { useWho } from '../who.tsx';
import { goToLine, TextArea } from './area.tsx';
import { Conflict } from './conflict.tsx';
import { Consequences } from './consequences.tsx';
import { Difference } from './difference.tsx';
import { type Draft, type Editing, useEditing } from './editing.ts';
import { generationOf, readCheck, readStored, type Stored, type Version } from './reads.ts';
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
  const { orgID } = useWho();
  const editing = useEditing(cluster.id, stored);
  const { text, storedText, draft } = editing;
  const [showsDifference, setShowsDifference] = useState(false);
  const showDifference = () => setShowsDifference(true);
  const area = useRef<HTMLTextAreaElement>(null);
  const goTo = (line: number) => area.current && goToLine(area.current, line);
  // biome-ignore lint/correctness/useExhaustiveDependencies: once for each that is chosen of the history
  useEffect(() => {
    if (!restored) return;
    editing.replace(restored.text, stored.generation);
    showDifference();
    goTo(1);
  }, [restored]);
  const judged = useJudgement(cluster.id, stored, isInService, editing);
  const { configuration, isConflict, error, faults } = judged;
  const done = () => {
    onSaved();
    setShowsDifference(false);
  };
  const about = { clusterId: cluster.id, stored, editing, versions, mine: configuration };
  return (
    <Panel
      title="Configuration"
      cli={`andromeda slurm-config edit ${cluster.name}`}
      operation={`PUT /clusters/${cluster.id}/scheduler-configuration?businessOrgId=${orgID}`}
    >
      {isConflict && draft && <Conflict {...about} draft={draft} show={showDifference} />}
      <Bar {...{ editing, stored, showsDifference, setShowsDifference }} />
      <TextArea
        area={area}
        label={`Slurm configuration of ${cluster.name}, as YAML`}
        text={text}
        hint={hint}
        marked={faults.map(({ line }) => line)}
        describedBy="slurm-faults"
        onChange={isInService ? editing.typed : undefined}
        onSave={() => document.querySelector<HTMLInputElement>('[data-reason]')?.focus()}
      />
      <Faults faults={faults} goTo={goTo} />
      {showsDifference && draft && <Difference before={storedText} after={judged.text} />}
      {error && <Problem error={error} />}
      <Hint isInService={isInService} />
      {isInService && draft && (
        <Save key={restored?.generation} {...{ cluster, judged, draft, editing, restored, done }} />
      )}
    </Panel>
  );
}

const typingMs = 400;

/** A text once nothing was typed for a moment: a long one takes its time to be read. */
function useSettled(text: string): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), typingMs);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}

/** What is wrong with the draft, and whether another version was saved since it was begun. */
function useJudgement(clusterId: string, stored: Stored, isInService: boolean, editing: Editing) {
  const { orgID } = useWho();
  const { text, draft, saved } = editing;
  const settled = useSettled(text);
  const parsed = useMemo(() => parseConfiguration(settled), [settled]);
  const isOverrun = draft !== undefined && draft.base !== stored.generation;
  const configuration = settled === text ? parsed.configuration : undefined;
  // It was saved, and no answer said so; or another person saved the same.
  const isThere = isOverrun && configuration !== undefined && isSame(configuration, stored.configuration);
  useEffect(() => {
    if (isThere) saved(text, stored.generation);
  });
  const asked = isInService && draft ? configuration : undefined;
  const { data: check, error } = useQuery(readCheck(clusterId, orgID, stored.generation, settled, asked));
  const found = check?.faults ?? [];
  const said = found.map(({ field, file, message }) => ({ line: parsed.lineOf(field, file), message }));
  const faults = [...parsed.faults, ...said];
  return { text: settled, configuration, isConflict: isOverrun && !isThere, check, error, faults };
}

function Hint({ isInService }: { isInService: boolean }) {
  if (!isInService) return <p className="soft small">Read-only: the cluster is not in service.</p>;
  return (
    <p className="soft small">
      YAML, as <code>andromeda slurm-config get</code> prints it. Fields that are left out are cleared;
      comments outside of the texts are not kept. Ctrl/⌘ S goes to the reason.
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
  const { draft, replaced, isKept, storedText, replace } = editing;
  return (
    <div className="code-bar">
      <span role="status">
        {draft ? `Changed from version ${draft.base}, not saved.` : `Version ${stored.generation}, current.`}
        {draft && isKept && <span className="soft"> Kept in this tab.</span>}
        {draft && !isKept && <b> It is too large to keep in this tab: do not reload the page.</b>}
      </span>
      <span className="tools">
        {draft && (
          <Check isOn={showsDifference} onChange={setShowsDifference} hint="">
            Show changes
          </Check>
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
  goTo: (line: number) => void;
}

function Faults({ faults, goTo }: FaultsOptions) {
  return (
    <div role="status" className="code-faults" id="slurm-faults">
      {faults.length > 0 && (
        <p className="fault">{faults.length === 1 ? 'One problem:' : `${faults.length} problems:`}</p>
      )}
      <ul>
        {faults.slice(0, mostListed).map(({ line, message }) => (
          <li key={`${line} ${message}`}>
            <Button className="link small" onClick={() => goTo(line)}>
              Line {line}
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
  const { configuration, isConflict, check, faults } = judged;
  const isSound = faults.length === 0;
  const body = isSound && !isConflict && check ? configuration : undefined;
  const send = async (sent: Configuration, headers: WriteHeaders) => {
    const params = {
      path: { clusterId: cluster.id },
      query: { businessOrgId: orgID },
      header: { ...headers, 'If-Match': `"${draft.base}"` },
    };
    const answer = await platform
      .PUT('/clusters/{clusterId}/scheduler-configuration', { params, body: sent })
      .finally(() => void queryClient.invalidateQueries({ queryKey: ['slurm', cluster.id, 'stored'] }));
    const stored = { configuration: bodyOf(answer), generation: generationOf(answer.response) };
    queryClient.setQueryData(readStored(cluster.id, orgID).queryKey, stored);
    editing.saved(draft.text, stored.generation);
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
