/** For operators: storage that organizations want to buy, and the answer to it. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { bodyOf, business } from '../api.ts';
import { installationTopics, type Purchase, readPurchases } from '../installation.ts';
import { holdsStaff } from '../operator.ts';
import { AsCommand } from '../parts/copy.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { InstallationNav } from '../parts/installation-nav.tsx';
import { Empty, Loaded, Page, Panel } from '../parts/page.tsx';
import { State } from '../parts/state.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { Age } from '../parts/time.tsx';
import { WriteForm, type WriteHeaders } from '../parts/write.tsx';
import { readOperatorClusters } from '../reads.ts';
import { useWho } from '../who.tsx';

interface Doing {
  purchase: Purchase;
  to: 'accept' | 'decline';
}

type Names = ReadonlyMap<string, { name: string; organization: string }>;

export function OperatorPurchasesPage() {
  const purchases = useQuery(readPurchases());
  const clusters = useQuery(readOperatorClusters());
  const names: Names = new Map(
    clusters.data?.clusters.map(({ cluster, name, organization_slug: organization }) => [
      cluster.id,
      { name, organization },
    ]),
  );
  const [doing, setDoing] = useState<Doing>();
  return (
    <Page title="Storage purchases" sentence={purchases.data && <Sentence list={purchases.data} />}>
      <InstallationNav />
      <Panel
        title="Purchases"
        tools={
          <AsCommand api="Business" cli="andromeda admin purchase list" operation="GET /operator/purchases" />
        }
      >
        <Loaded of={purchases}>
          {(list) =>
            list.length === 0 ? (
              <Empty>Nobody has asked to buy storage.</Empty>
            ) : (
              <PurchaseTable list={list} names={names} act={setDoing} />
            )
          }
        </Loaded>
      </Panel>
      {doing && <Decide doing={doing} names={names} close={() => setDoing(undefined)} />}
    </Page>
  );
}

function Sentence({ list }: { list: readonly Purchase[] }) {
  const open = list.filter(({ state }) => state === 'requested').length;
  if (open === 0) return <>No purchase waits for an answer.</>;
  return (
    <>
      {open} {open === 1 ? 'purchase waits' : 'purchases wait'} for an answer.
    </>
  );
}

const tebibyte = 2 ** 40;

function size(bytes: number): string {
  return bytes >= tebibyte ? `${(bytes / tebibyte).toFixed(1)} TiB` : `${(bytes / 2 ** 30).toFixed(1)} GiB`;
}

const states = {
  requested: { kind: 'busy', text: 'Waits' },
  active: { kind: 'good', text: 'Accepted' },
  declined: { kind: 'none', text: 'Declined' },
} as const;

function PurchaseTable({
  list,
  names,
  act,
}: {
  list: readonly Purchase[];
  names: Names;
  act: (doing: Doing) => void;
}) {
  const mayAct = holdsStaff(useWho(), 'staff.operate');
  const place = ({ target_cluster_id: id }: Purchase) => names.get(id);
  const columns: Column<Purchase>[] = [
    { name: 'Organization', cell: (one) => place(one)?.organization ?? one.organization_id },
    { name: 'Cluster', cell: (one) => place(one)?.name ?? one.target_cluster_id },
    { name: 'Type', cell: (one) => one.storage_type },
    { name: 'More', isNumber: true, cell: (one) => size(one.bytes) },
    {
      name: 'State',
      cell: ({ state }) => <State kind={states[state].kind}>{states[state].text}</State>,
    },
    { name: 'Asked', cell: (one) => <Age at={one.created_at} /> },
    { name: 'Decided', cell: (one) => (one.decided_at ? <Age at={one.decided_at} /> : '–') },
  ];
  if (mayAct)
    columns.push({
      name: 'Do',
      cell: (purchase) =>
        purchase.state === 'requested' && (
          <span className="buttons inline">
            <button type="button" className="second small" onClick={() => act({ purchase, to: 'accept' })}>
              Accept…
            </button>
            <button type="button" className="second small" onClick={() => act({ purchase, to: 'decline' })}>
              Decline…
            </button>
          </span>
        ),
    });
  return (
    <Table
      name="purchases"
      rows={list.toReversed()}
      id={({ id }) => id}
      text={(one) => `${place(one)?.organization ?? ''} ${place(one)?.name ?? ''} ${one.state}`}
      columns={columns}
    />
  );
}

function Decide({
  doing: { purchase, to },
  names,
  close,
}: {
  doing: Doing;
  names: Names;
  close: () => void;
}) {
  const send = (_body: object, header: WriteHeaders) =>
    business
      .POST(`/operator/purchases/{purchaseID}/${to}`, {
        params: { path: { purchaseID: purchase.id }, header },
      })
      .then(bodyOf);
  const verb = to === 'accept' ? 'Accept' : 'Decline';
  const name = names.get(purchase.target_cluster_id)?.name ?? purchase.target_cluster_id;
  return (
    <Dialog title={`${verb} the purchase?`} onClose={close}>
      <p>
        {to === 'accept'
          ? `${name} gets ${size(purchase.bytes)} of ${purchase.storage_type} more. An accepted purchase cannot be taken back.`
          : `${name} gets nothing more. The organization can ask again with another quote.`}
      </p>
      <WriteForm
        write={{ form: `purchase.${to}.${purchase.id}`, send, topics: installationTopics, onDone: close }}
        body={{}}
        label={verb}
        danger={to === 'decline'}
        cancel={close}
      />
      <AsCommand
        api="Business"
        cli={`andromeda admin purchase ${to} ${purchase.id} --reason '…'`}
        operation={`POST /operator/purchases/${purchase.id}/${to}`}
      />
    </Dialog>
  );
}
