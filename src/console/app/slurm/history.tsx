/** The versions of a cluster's configuration: author, time, reason and changes of each, and a way to restore it. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Button, Dialog, Empty, Loaded } from '../parts/page.tsx';
import { actionOf, type Column, Table } from '../parts/table.tsx';
import { Age, firstOf } from '../parts/values.tsx';
import { useWho } from '../reads.ts';
import { Difference } from './difference.tsx';
import type { Restored } from './editor.tsx';
import { readVersion, type Version } from './reads.ts';
import { formatConfiguration } from './text.ts';

interface HistoryOptions {
  clusterId: string;
  versions: readonly Version[];
  restore: ((chosen: Restored) => void) | undefined;
}

export function History({ clusterId, versions, restore }: HistoryOptions) {
  const [shown, setShown] = useState<Version>();
  const close = () => setShown(undefined);
  return (
    <>
      <Table
        name="configurations"
        rows={versions}
        id={({ generation }) => String(generation)}
        text={(one) => `${one.generation} ${one.author.email} ${one.reason} ${changesOf(one)}`}
        columns={[
          ...columns,
          actionOf<Version>('View', setShown, ({ generation }) => `View version ${generation}`),
        ]}
        none={<Empty>No configuration was ever set here.</Empty>}
      />
      {shown && <Shown clusterId={clusterId} version={shown} restore={restore} close={close} />}
    </>
  );
}

const columns: Column<Version>[] = [
  { name: 'Version', isNumber: true, cell: ({ generation }) => generation },
  { name: 'Saved', cell: ({ createdAt }) => <Age at={createdAt} /> },
  { name: 'By', cell: ({ author }) => author.email },
  { name: 'Reason', cell: ({ reason }) => <span className="long">{reason || <i>no reason given</i>}</span> },
  { name: 'Changed', cell: (one) => <span className="long">{changesOf(one)}</span> },
];

const mostNamed = 4;

function changesOf({ changes, changeCount }: Version): string {
  const names = changes.map(({ field, file }) => (file === undefined ? field : `${field}/${file}`));
  return firstOf(names, mostNamed, changeCount);
}

interface ShownOptions extends Pick<HistoryOptions, 'clusterId' | 'restore'> {
  version: Version;
  close: () => void;
}

function Shown({ clusterId, version, restore, close }: ShownOptions) {
  const { orgID } = useWho();
  const { generation, author, createdAt, reason } = version;
  const own = useQuery(readVersion(clusterId, orgID, generation));
  const before = useQuery(readVersion(clusterId, orgID, generation - 1));
  const text = formatConfiguration(own.data ?? {});
  const open = () => {
    close();
    restore?.({ text, generation });
  };
  return (
    <Dialog title={`Version ${generation}`} onClose={close} className="wide">
      <p className="soft">
        By {author.email}, <Age at={createdAt} />
        {reason ? `: “${reason}”` : ', without a reason'}
      </p>
      {before.data === null && <p className="soft">Version {generation - 1} is no longer kept.</p>}
      <Loaded of={before}>
        {(known) => (
          <Loaded of={own}>
            {() => <Difference before={formatConfiguration(known ?? {})} after={text} />}
          </Loaded>
        )}
      </Loaded>
      {own.data === null && <p className="fault">It is no longer kept.</p>}
      {restore && own.data && (
        <div className="buttons">
          <Button onClick={open}>Open in the editor</Button>
        </div>
      )}
    </Dialog>
  );
}
