/** The editor of a configuration: its faults by line, the consequences of saving, and conflicts with another person's save. */
import { useQuery } from '@tanstack/react-query';
import { useEffect, useMemo, useRef, useState } from 'react';
import { bodyOf, platform, queryClient, type WriteHeaders } from '../api.ts';
import { Button, Check, Panel, Problem } from '../parts/page.tsx';
import { count } from '../parts/values.tsx';
import { WriteForm } from '../parts/write.tsx';
import { useSettled } from '../people.ts';
import { useWho } from '../reads.ts';
import { goToLine, TextArea } from './area.tsx';
import { Consequences } from './consequences.tsx';
import { Difference } from './difference.tsx';
import { type Draft, type Editing, useEditing } from './editing.ts';
import { generationOf, readCheck, readStored, type Stored, type Version } from './reads.ts';
import { type Configuration, formatConfiguration, parseConfiguration } from './text.ts';

export interface Restored {
  text: string;
  generation: number;
}

const hint = `slurmPartitions: |
  PartitionName=gpu Nodes=ALL Default=YES
slurmExtraConfig: |
  MaxArraySize=2000`;

const about =
  'YAML, as `andromeda slurm-config get` prints it. Fields that are left out are cleared; comments outside of the texts are not kept.';

interface EditorOptions {
  cluster: { id: string; name: string };
  stored: Stored;
  versions: readonly Version[];
  isInService: boolean;
  restored: Restored | undefined;
  onSaved: () => void;
}

export function Editor({ cluster, stored, versions, isInService, restored, onSaved }: EditorOptions) {
  const { orgID } = useWho();
  const editing = useEditing(cluster.id, stored);
  const { text, storedText, draft } = editing;
  const [isCompared, setCompared] = useState(false);
  const area = useRef<HTMLTextAreaElement>(null);
  const goTo = (line: number) => area.current && goToLine(area.current, line);
  // biome-ignore lint/correctness/useExhaustiveDependencies: once for each version that is chosen from the history
  useEffect(() => {
    if (!restored) return;
    editing.replace(restored.text, stored.generation);
    setCompared(true);
    goTo(1);
  }, [restored]);
  const judged = useJudgement(cluster.id, stored, isInService, editing);
  const { isConflict, error, faults } = judged;
  const done = () => {
    onSaved();
    setCompared(false);
  };
  return (
    <Panel
      title="Configuration"
      cli={`andromeda slurm-config set ${cluster.name} -f slurm.yaml`}
      operation={`PUT /clusters/${cluster.id}/scheduler-configuration?businessOrgId=${orgID}`}
    >
      {isConflict && draft && (
        <Conflict current={stored.generation} draft={draft} versions={versions} editing={editing} />
      )}
      <Bar {...{ editing, stored, isCompared, setCompared }} />
      <TextArea
        area={area}
        label={`Slurm configuration of ${cluster.name}, as YAML`}
        text={text}
        hint={hint}
        isInvalid={faults.length > 0}
        describedBy="slurm-faults"
        onChange={isInService ? editing.typed : undefined}
      />
      <Faults faults={faults} goTo={goTo} />
      {(isCompared || isConflict) && draft && <Difference before={storedText} after={judged.text} />}
      {error && <Problem error={error} />}
      <p className="soft small">{isInService ? about : 'Read-only: the cluster is not in service.'}</p>
      {isInService && draft && (
        <Save key={restored?.generation} {...{ cluster, judged, draft, editing, restored, done }} />
      )}
    </Panel>
  );
}

const typingMs = 400;

interface Fault {
  line: number;
  message: string;
}

function useJudgement(clusterId: string, stored: Stored, isInService: boolean, editing: Editing) {
  const { orgID } = useWho();
  const { text, storedText, draft, saved } = editing;
  const settled = useSettled(text, typingMs);
  const { configuration, faults, lineOf } = useMemo(() => parseConfiguration(settled), [settled]);
  const isOverrun = draft !== undefined && draft.base !== stored.generation;
  const asked = isInService && draft && settled === text ? configuration : undefined;
  const { data: check, error } = useQuery(readCheck(clusterId, orgID, stored.generation, settled, asked));
  // The text was saved but the answer was lost, or another person saved the same text.
  const isThere = isOverrun && asked !== undefined && formatConfiguration(asked) === storedText;
  useEffect(() => {
    if (isThere) saved(text, stored.generation);
  });
  const said = (check?.faults ?? []).map(({ field, file, message }) => ({
    line: lineOf(field, file),
    message,
  }));
  return {
    text: settled,
    configuration: asked,
    isConflict: isOverrun && !isThere,
    check,
    error,
    faults: [...faults, ...said],
  };
}

interface ConflictOptions {
  current: number;
  draft: Draft;
  versions: readonly Version[];
  editing: Editing;
}

/** Another person saved while the person typed. The difference is shown below. */
function Conflict({ current, draft, versions, editing }: ConflictOptions) {
  const theirs = versions.find(({ generation }) => generation === current);
  return (
    <section className="problem conflict" role="alert">
      <p>
        <b>Another person saved in the meantime.</b> Version {current} is current
        {theirs && `, by ${theirs.author.email}${theirs.reason ? `: “${theirs.reason}”` : ''}`}. You started
        from version {draft.base}; your text is kept. With “Keep mine”, saving replaces theirs.
      </p>
      <div className="buttons">
        <Button onClick={() => editing.rebase(current)}>Keep mine</Button>
        <Button className="second" onClick={() => editing.replace(editing.storedText, current)}>
          Use theirs
        </Button>
      </div>
    </section>
  );
}

interface BarOptions {
  editing: Editing;
  stored: Stored;
  isCompared: boolean;
  setCompared: (isCompared: boolean) => void;
}

function Bar({ editing, stored, isCompared, setCompared }: BarOptions) {
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
          <Check isOn={isCompared} onChange={setCompared} hint="">
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
      {faults.length > 0 && <p className="fault">{count(faults.length, 'problem')}:</p>}
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
  const { configuration, isConflict, check, error, faults } = judged;
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
      <Consequences check={isSound ? check : undefined} hasFaults={!isSound || error !== null} />
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
