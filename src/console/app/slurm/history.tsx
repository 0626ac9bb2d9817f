/** The configurations that a cluster was given: who set each, when and why; looked at, compared, and set again. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Dialog } from '../parts/dialog.tsx';
import { Empty, Loaded } from '../parts/page.tsx';
import { Table } from '../parts/table.tsx';
import { Age } from '../parts/time.tsx';
import { useWho } from '../who.tsx';
import { CodeView } from './code-view.tsx';
import { readVersion, type Version } from './reads.ts';
import { formatConfiguration } from './text.ts';

type Restore = ((text: string, generation: number) => void) | undefined;

export function History({
  clusterId,
  versions,
  restore,
}: {
  clusterId: string;
  versions: readonly Version[];
  restore: Restore;
}) {
  const [shown, setShown] = useState<Version>();
  if (versions.length === 0) return <Empty>No configuration was ever set here.</Empty>;
  return (
    <>
      <Table
        name="configurations"
        rows={versions}
        id={({ generation }) => String(generation)}
        text={(one) => `${one.generation} ${one.author.email} ${one.reason} ${changesOf(one)}`}
        columns={[
          { name: 'Version', isNumber: true, cell: ({ generation }) => generation },
          { name: 'Set', cell: ({ createdAt }) => <Age at={createdAt} /> },
          { name: 'By', cell: ({ author }) => author.email },
          {
            name: 'Reason',
            cell: (one) => <span className="long">{one.reason || <i>no reason given</i>}</span>,
          },
          { name: 'Changed', cell: (one) => <span className="long">{changesOf(one)}</span> },
          {
            name: '',
            cell: (one) => (
              <button
                type="button"
                className="second small"
                aria-label={`View version ${one.generation}`}
                onClick={() => setShown(one)}
              >
                View
              </button>
            ),
          },
        ]}
      />
      {shown && (
        <Shown
          clusterId={clusterId}
          version={shown}
          newest={versions[0]?.generation ?? 0}
          restore={restore}
          close={() => setShown(undefined)}
        />
      )}
    </>
  );
}

const mostNamed = 4;

function changesOf({ changes, changeCount }: Version): string {
  const names = changes
    .slice(0, mostNamed)
    .map(({ field, file }) => (file === undefined ? field : `${field}/${file}`));
  const more = changeCount - names.length;
  return `${names.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

function Shown({
  clusterId,
  version,
  newest,
  restore,
  close,
}: {
  clusterId: string;
  version: Version;
  newest: number;
  restore: Restore;
  close: () => void;
}) {
  const { orgID } = useWho();
  const { generation } = version;
  const [against, setAgainst] = useState<'none' | 'before' | 'newest'>('none');
  const other = against === 'before' ? generation - 1 : newest;
  const own = useQuery(readVersion(clusterId, orgID, generation));
  const base = useQuery({ ...readVersion(clusterId, orgID, other), enabled: against !== 'none' });
  const isGone = against !== 'none' && base.data === null;
  return (
    <Dialog title={`Version ${generation}`} onClose={close} className="wide">
      <p className="soft">
        By {version.author.email}, <Age at={version.createdAt} />
        {version.reason ? `: “${version.reason}”` : ', without a reason'}
      </p>
      <label htmlFor="against">Compared with</label>
      <select
        id="against"
        value={against}
        onChange={(event) => setAgainst(event.target.value as typeof against)}
      >
        <option value="none">nothing</option>
        <option value="before">version {generation - 1}, the previous one</option>
        {generation !== newest && <option value="newest">version {newest}, the current one</option>}
      </select>
      {isGone && <p className="fault">Version {other} is no longer kept.</p>}
      <div className="look">
        <Loaded of={own}>
          {(configuration) =>
            configuration === null ? (
              <p className="fault">It is no longer kept.</p>
            ) : (
              <CodeView
                label={`Configuration version ${generation}, as YAML`}
                text={formatConfiguration(configuration)}
                isReadOnly
                hint="Nothing was set."
                original={against !== 'none' && base.data ? formatConfiguration(base.data) : undefined}
              />
            )
          }
        </Loaded>
      </div>
      {restore && own.data && generation !== newest && (
        <div className="buttons">
          <button
            type="button"
            onClick={() => {
              close();
              restore(formatConfiguration(own.data ?? {}), generation);
            }}
          >
            Open in the editor
          </button>
        </div>
      )}
    </Dialog>
  );
}
