/** Whether the audit trail is whole: asked by hand, for it reads everything. */
import { useRef, useState } from 'react';
import { Broken, forgetSeen, type Verified, verifyTrail } from '../verify.ts';
import { AsCommand } from './copy.tsx';
import { Panel } from './page.tsx';
import { State } from './state.tsx';
import { Age } from './time.tsx';

type Result =
  | { kind: 'checking'; done: number }
  | { kind: 'whole'; found: Verified; at: string }
  | { kind: 'broken'; message: string }
  | { kind: 'failed'; message: string };

export function VerifyTrail() {
  const [result, setResult] = useState<Result>();
  const stopping = useRef<AbortController>(undefined);
  const check = async () => {
    const own = new AbortController();
    stopping.current = own;
    setResult({ kind: 'checking', done: 0 });
    try {
      const found = await verifyTrail(own.signal, (done) => setResult({ kind: 'checking', done }));
      setResult({ kind: 'whole', found, at: new Date().toISOString() });
    } catch (error) {
      const message = error instanceof Error ? error.message : 'It failed.';
      if (own.signal.aborted) setResult(undefined);
      else setResult({ kind: error instanceof Broken ? 'broken' : 'failed', message });
    }
  };
  return (
    <Panel
      title="Is it whole?"
      tools={
        <AsCommand api="Business" cli="andromeda admin audit verify" operation="GET /operator/audit/heads" />
      }
    >
      <div className="verify" role="status">
        {result ? <Outcome of={result} /> : <p>This browser reads the whole trail and computes it again.</p>}
      </div>
      {result?.kind === 'checking' ? (
        <button type="button" className="second small" onClick={() => stopping.current?.abort()}>
          Stop
        </button>
      ) : (
        <button type="button" className="second small" onClick={() => void check()}>
          {result ? 'Check again' : 'Check the trail'}
        </button>
      )}
      {result?.kind === 'broken' && (
        <button type="button" className="link small" onClick={forgetSeen}>
          Forget what this browser has seen
        </button>
      )}
    </Panel>
  );
}

function Outcome({ of }: { of: Result }) {
  if (of.kind === 'checking') return <p>{of.done.toLocaleString()} entries fit so far…</p>;
  if (of.kind === 'failed') return <p>{of.message}</p>;
  if (of.kind === 'broken')
    return (
      <p>
        <State kind="bad">It does not fit.</State> {of.message}
      </p>
    );
  const { last, entries, hash, signed, redacted, deleted, hasSignatures, seenAt, ms } = of.found;
  return (
    <>
      <p>
        <State kind="good">Whole</State> <Age at={of.at} />: {entries.toLocaleString()} entries up to number{' '}
        {last}, in {(ms / 1000).toFixed(1)} s.{' '}
        {signed === 0
          ? 'No head is signed yet.'
          : hasSignatures
            ? `The installation's key has signed it up to entry ${signed}.`
            : 'This browser cannot check signatures; the command can.'}{' '}
        {deleted > 0 && `Entries up to ${deleted} were deleted by retention, signed. `}
        {redacted > 0 && `Texts of ${redacted} were replaced, signed. `}
        {seenAt === undefined ? (
          'This browser had not checked it before, and notes this head.'
        ) : (
          <>
            What this browser found <Age at={seenAt} /> is still in it.
          </>
        )}
      </p>
      <p className="soft">
        Head{' '}
        <code className="cut">
          {last}:{hash}
        </code>
      </p>
    </>
  );
}
