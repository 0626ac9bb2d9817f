/** Another person saved while this was typed: shows both versions, so that nothing of either is lost. */
import { useQuery } from '@tanstack/react-query';
import { Button } from '../parts/controls.tsx';
import { useWho } from '../who.tsx';
import type { Draft, Editing } from './editing.ts';
import { readVersion, type Stored, type Version } from './reads.ts';
import { type Configuration, formatConfiguration, mergeConfigurations } from './text.ts';

interface ConflictOptions {
  clusterId: string;
  draft: Draft;
  stored: Stored;
  /** Undefined while the text says none. */
  mine: Configuration | undefined;
  versions: readonly Version[];
  editing: Editing;
  /** Shows the difference from theirs. */
  show: () => void;
}

export function Conflict({ clusterId, draft, stored, mine, versions, editing, show }: ConflictOptions) {
  const { orgID } = useWho();
  const base = useQuery(readVersion(clusterId, orgID, draft.base));
  const merged = base.data && mine && mergeConfigurations(base.data, stored.configuration, mine);
  const number = stored.generation;
  const theirs = versions.find(({ generation }) => generation === number);
  const merge = (both: Configuration) => {
    editing.replace(formatConfiguration(both), number);
    show();
  };
  const keepMine = () => {
    editing.rebase(number);
    show();
  };
  return (
    <section className="problem conflict" role="alert">
      <p>
        <b>Another person saved in the meantime.</b> Version {number} is current
        {theirs && `, by ${theirs.author.email}${theirs.reason ? `: “${theirs.reason}”` : ''}`}. You started
        from version {draft.base}; your text is kept.
      </p>
      <div className="buttons">
        {merged && <Button onClick={() => merge(merged)}>Merge both</Button>}
        <Button className="second" onClick={show}>
          Compare
        </Button>
        <Button className="second" onClick={keepMine}>
          Keep mine
        </Button>
        <Button className="second" onClick={() => editing.replace(editing.storedText, number)}>
          Use theirs
        </Button>
      </div>
      {base.data && mine && !merged && (
        <p>Both changed the same part. With “Keep mine”, saving replaces theirs.</p>
      )}
    </section>
  );
}
