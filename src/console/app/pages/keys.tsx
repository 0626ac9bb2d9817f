/** SSH keys: register, rename and revoke them, and see each cluster drop a revoked key. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { components } from '../../../api/generated/business.ts';
import { disuseOf } from '../../../domain/access/lapse.ts';
import { mayHavePrivateKey } from '../../../domain/text.ts';
import { operation } from '../api.ts';
import { Button, CopyLine, Dialog, Empty, Field, Loaded, Page, Panel, quoted, said } from '../parts/page.tsx';
import { Strip } from '../parts/strip.tsx';
import { actions, type Column, Table, Two } from '../parts/table.tsx';
import { Age, count, Moment, State, useNow } from '../parts/values.tsx';
import { useDraft, WriteDialog, WriteForm } from '../parts/write.tsx';
import { endedBy, readKeyPlan, useReadPlan } from '../people.ts';
import { read, readKeyClusters, readKeys } from '../reads.ts';

type SshKey = components['schemas']['SshKey'];

export function KeysPage() {
  const keys = useQuery(readKeys());
  const [revoking, setRevoking] = useState<SshKey>();
  const [renaming, setRenaming] = useState<SshKey>();
  const [isAdding, setIsAdding] = useState(false);
  const active = keys.data?.keys.filter((key) => key.lifecycle_state === 'active') ?? [];
  const revoked = keys.data?.keys.filter((key) => key.lifecycle_state === 'revoked') ?? [];
  const last = revoked.toSorted((a, b) => ((a.revoked_at ?? '') < (b.revoked_at ?? '') ? -1 : 1)).at(-1);
  const register = <Button onClick={() => setIsAdding(true)}>Register a key</Button>;
  return (
    <Page
      title="SSH keys"
      sentence={said(keys, () => <Sentence active={active.length} />)}
      actions={register}
    >
      <Loaded of={keys}>
        {() => (
          <>
            <Panel title="Active" cli="andromeda keys" operation="GET /me/ssh-keys">
              <Table
                name="SSH keys"
                rows={active}
                id={(key) => key.id}
                columns={[...columns, actionsOf(setRenaming, setRevoking)]}
                none={<Empty action={register}>Without a key you cannot log in over SSH.</Empty>}
              />
            </Panel>
            {last && <Dropped revoked={last} />}
          </>
        )}
      </Loaded>
      {isAdding && (
        <Dialog title="Register a key" onClose={() => setIsAdding(false)}>
          <KeyForm onDone={() => setIsAdding(false)} />
        </Dialog>
      )}
      {renaming && <Rename sshKey={renaming} close={() => setRenaming(undefined)} />}
      {revoking && (
        <Revoke sshKey={revoking} isLast={active.length === 1} close={() => setRevoking(undefined)} />
      )}
    </Page>
  );
}

function Sentence({ active }: { active: number }) {
  if (active === 0) return <>You have no active keys.</>;
  const lost = 'Lost a laptop? Revoke its key: it stops working at once, and its sessions end.';
  return `You have ${count(active, 'active key')}. ${lost}`;
}

const columns: Column<SshKey>[] = [
  {
    name: 'Key',
    cell: ({ label, fingerprint }) => (
      <Two
        className="key"
        first={<b>{label ?? 'No label'}</b>}
        second={<CopyLine text={fingerprint} label={`the fingerprint of ${label ?? fingerprint}`} />}
      />
    ),
  },
  {
    name: 'Added',
    cell: ({ created_at: at, created_from: from }) => (
      <Two first={<Age at={at} />} second={from && `from ${from}`} />
    ),
  },
  { name: 'Last used', cell: (key) => <LastUse of={key} /> },
];

function actionsOf(rename: (key: SshKey) => void, revoke: (key: SshKey) => void): Column<SshKey> {
  return {
    name: actions,
    cell: (key) => (
      <>
        <Button className="second small" onClick={() => rename(key)}>
          Rename…
        </Button>{' '}
        <Button className="second small" onClick={() => revoke(key)}>
          Revoke…
        </Button>
      </>
    ),
  };
}

/** The time and source of a key's last use; a key unused for long is marked. */
function LastUse({ of }: { of: SshKey }) {
  const now = useNow();
  const { created_at: createdAt, last_used_at: at, last_used_from: from } = of;
  const disuse = disuseOf({ createdAt, lastUsedAt: at }, now);
  const mark = disuse && <State kind="warn">{`${disuse.charAt(0).toUpperCase()}${disuse.slice(1)}`}</State>;
  if (at === undefined) return mark ?? <span className="soft">Not yet</span>;
  return <Two first={mark ?? <Age at={at} />} second={from && `from ${from}`} />;
}

function Rename({ sshKey, close }: { sshKey: SshKey; close: () => void }) {
  const naming = operation('put', '/me/ssh-keys/{keyID}/label', { keyID: sshKey.id });
  const [label, setLabel] = useDraft(naming.name, 'label', sshKey.label ?? '');
  const typed = label.trim();
  return (
    <WriteDialog
      title="Rename this key"
      operation={naming}
      topics={['me']}
      body={{ label: typed }}
      label="Save"
      usualReason="To tell my keys apart"
      cli={`andromeda keys rename ${sshKey.fingerprint} ${quoted(typed)}`}
      close={close}
    >
      <Field
        id="key-label"
        label="Label"
        value={label}
        onChange={setLabel}
        maxLength={80}
        autoComplete="off"
      />
      <p>
        <code>{sshKey.fingerprint}</code>
      </p>
    </WriteDialog>
  );
}

function Revoke({ sshKey, isLast, close }: { sshKey: SshKey; isLast: boolean; close: () => void }) {
  const consequences = useReadPlan(readKeyPlan(sshKey.id));
  return (
    <WriteDialog
      title="Revoke this key?"
      operation={operation('post', '/me/ssh-keys/{keyID}/revoke', { keyID: sshKey.id })}
      topics={['me']}
      body={{}}
      label="Revoke"
      usualReason="The key is lost"
      danger
      isWaiting={consequences.isWaiting}
      ends={endedBy(consequences.plan)}
      cli={`andromeda keys revoke ${sshKey.fingerprint}`}
      close={close}
    >
      <p>
        {sshKey.label && <b>{sshKey.label} </b>}
        <code>{sshKey.fingerprint}</code>
      </p>
      <p>
        It stops working at once, its sessions end, and it can never be registered again.
        {isLast && ' This is your last key: you cannot log in until you register another one.'}
      </p>
      <KeyPlan of={consequences} />
    </WriteDialog>
  );
}

/** The progress of a revocation: the gateway at once, then each cluster when its reports first lack the key. */
function Dropped({ revoked }: { revoked: SshKey }) {
  const clusters = useQuery(readKeyClusters(revoked.id));
  if (!revoked.revoked_at) return null;
  const at = revoked.revoked_at;
  return (
    <Panel
      title="Last revoked key"
      cli={`andromeda keys clusters ${revoked.fingerprint}`}
      operation={`GET /me/ssh-keys/${revoked.id}/clusters`}
    >
      <p>
        <code className="cut">{revoked.fingerprint}</code>
      </p>
      <p>
        <State kind="good">Refused by the gateway</State> since <Moment at={at} />
      </p>
      <Loaded of={clusters}>
        {({ clusters: list }) =>
          list.length === 0 ? (
            <p className="soft">No cluster had it when you revoked it.</p>
          ) : (
            list.map((cluster) => <DroppedBy key={cluster.cluster_id} cluster={cluster} at={at} />)
          )
        }
      </Loaded>
    </Panel>
  );
}

function DroppedBy({ cluster, at }: { cluster: components['schemas']['KeyCluster']; at: string }) {
  const { cluster_name: name, dropped_at: dropped } = cluster;
  return (
    <>
      <h3>{name}</h3>
      <Strip
        of={`key/${cluster.cluster_id}`}
        steps={[
          { name: 'Revoked', state: 'done', at },
          { name: 'Removed from the cluster', state: dropped ? 'done' : 'busy', at: dropped ?? undefined },
        ]}
        missing={`${name} has not confirmed the removal yet. The key does not work in the meantime.`}
      />
      {dropped && (
        <p className="soft">
          {name} removed it <Moment at={dropped} />.
        </p>
      )}
    </>
  );
}

/** Loads its code on demand, as this page belongs to the bundle that every page loads. */
function KeyPlan({ of: consequences }: { of: ReturnType<typeof useReadPlan> }) {
  const part = useQuery(read(['key-plan-part'], [], () => import('../parts/consequences.tsx')));
  return <Loaded of={part}>{({ Consequences }) => <Consequences of={consequences} />}</Loaded>;
}

export function KeyForm({ onDone }: { onDone?: () => void }) {
  const registering = operation('post', '/me/ssh-keys', {});
  const isOther = (given: string) => !/^(sk-)?ssh-/.test(given) || mayHavePrivateKey(given);
  const [text, setText] = useDraft<string>(registering.name, 'key', '', isOther);
  const isPrivate = mayHavePrivateKey(text);
  const consequences = useReadPlan(readKeyPlan());
  const done = () => {
    setText('');
    onDone?.();
  };
  return (
    <>
      <WriteForm
        operation={registering}
        topics={['me']}
        onDone={done}
        body={isPrivate || text.trim() === '' ? undefined : { public_key: text.trim() }}
        label="Register the key"
        usualReason="My SSH key"
        isWaiting={consequences.isWaiting}
        ends={endedBy(consequences.plan)}
      >
        <label htmlFor="public-key">Public key</label>
        <textarea
          id="public-key"
          value={text}
          rows={3}
          onChange={(event) => setText(event.target.value)}
          required
          spellCheck={false}
          autoComplete="off"
          placeholder="ssh-ed25519 AAAAC3Nza… you@laptop"
          aria-describedby="public-key-fault"
          aria-invalid={isPrivate}
        />
        <p id="public-key-fault" className="fault" role="alert">
          {isPrivate &&
            'This is a private key, or may be a part of one, which must never leave your machine. Use the file that ends in .pub.'}
        </p>
        <KeyFile onRead={setText} />
        <KeyPlan of={consequences} />
      </WriteForm>
      <MakeKey />
    </>
  );
}

function KeyFile({ onRead }: { onRead: (text: string) => void }) {
  const take = async (file: File | undefined) => {
    if (file) onRead(file.size > 20_000 ? 'too large' : await file.text());
  };
  return (
    <>
      <label htmlFor="key-file">
        Or choose a file <span className="soft">(it ends in .pub)</span>
      </label>
      <input
        id="key-file"
        type="file"
        accept=".pub,text/plain"
        onChange={(event) => void take(event.target.files?.[0])}
      />
    </>
  );
}

function MakeKey() {
  return (
    <details>
      <summary>No key yet? Create one</summary>
      <CopyLine text="ssh-keygen -t ed25519" label="create a key" />
      <CopyLine text="cat ~/.ssh/id_ed25519.pub" label="show the public key" />
      <p className="soft">
        In a terminal, or PowerShell on Windows. Give it a passphrase. The file without .pub never leaves your
        machine.
      </p>
    </details>
  );
}
