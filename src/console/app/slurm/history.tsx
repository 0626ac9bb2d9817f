/** The configurations that a cluster was given: who set each, when and why; looked at, compared, and set again. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Button, Dialog, Select } from '../parts/controls.tsx';
import { Empty, Loaded } from '../parts/page.tsx';
import { actionOf, type Column, Table } from '../parts/table.tsx';
import { Age, firstOf } from '../parts/values.tsx';
import { useWho } from '../who.tsx';
import { TextArea } from './area.tsx';
import { Difference } from './difference.tsx';
import type { Restored } from './editor.tsx';
import { readVersion, type Version } from './reads.ts';
import { type Configuration, formatConfiguration } from './text.ts';

interface HistoryOptions {
  clusterId: string;
  versions: readonly Version[];
  restore: ((chosen: Restored) => void) | undefined;
}

export function History({ clusterId, versions, restore }: HistoryOptions) {
  const [shown, setShown] = useState<Version>();
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
  newest: number;
  close: () => void;
}

type Against = 'none' | 'before' | 'newest';

function Shown({ clusterId, version, newest, restore, close }: ShownOptions) {
  const { orgID } = useWho();
  const { generation, author, createdAt, reason } = version;
  const [against, setAgainst] = useState<Against>('none');
  const other = against === 'before' ? generation - 1 : newest;
  const own = useQuery(readVersion(clusterId, orgID, generation));
  const base = useQuery({ ...readVersion(clusterId, orgID, other), enabled: against !== 'none' });
  const options: [Against, string][] = [
    ['none', 'nothing'],
    ['before', `version ${generation - 1}, the previous one`],
  ];
  if (generation !== newest) options.push(['newest', `version ${newest}, the current one`]);
  const original = against === 'none' ? undefined : base.data;
  const open = () => {
    close();
    restore?.({ text: formatConfiguration(own.data ?? {}), generation });
  };
  return (
    <Dialog title={`Version ${generation}`} onClose={close} className="wide">
      <p className="soft">
        By {author.email}, <Age at={createdAt} />
        {reason ? `: “${reason}”` : ', without a reason'}
      </p>
      <Select id="against" label="Compared with" value={against} onChange={setAgainst} options={options} />
      {original === null && <p className="fault">Version {other} is no longer kept.</p>}
      <div className="look">
        <Loaded of={own}>
          {(known) => <Content generation={generation} configuration={known} original={original} />}
        </Loaded>
      </div>
      {restore && own.data && generation !== newest && (
        <div className="buttons">
          <Button onClick={open}>Open in the editor</Button>
        </div>
      )}
    </Dialog>
  );
}

interface ContentOptions {
  generation: number;
  configuration: Configuration | null;
  original: Configuration | null | undefined;
}

function Content({ generation, configuration, original }: ContentOptions) {
  if (configuration === null) return <p className="fault">It is no longer kept.</p>;
  const text = formatConfiguration(configuration);
  if (original) return <Difference before={formatConfiguration(original)} after={text} />;
  return (
    <TextArea label={`Configuration version ${generation}, as YAML`} text={text} hint="Nothing was set." />
  );
}
