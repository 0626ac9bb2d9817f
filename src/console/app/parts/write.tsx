/**
 * A form that writes. It asks for the reason that the audit trail keeps. A form keeps one idempotency key, with a hash of the
 * body, until the server answers: a second click, a reload and a dropped connection all result in one change.
 */
import { useMutation } from '@tanstack/react-query';
import { type FormEvent, type ReactNode, useId, useLayoutEffect, useRef, useState } from 'react';
import { ApiError, NoAnswer, type Operation, personOfPage, queryClient } from '../api.ts';
import { announce, createSource, refresh } from '../live.ts';
import { AsCommand, Button, Check, Dialog, focusFirstField, Problem } from './page.tsx';

interface SentWrite {
  key: string;
  mark: string;
}

const tries = 4;

export interface Write<Body, Answer> {
  operation: Operation<Body, Answer>;
  topics: readonly string[];
  onDone?: ((answer: Answer) => void) | undefined;
  doneText: string | ((answer: Answer) => string);
}

/** Sends a write. Retries without an answer use the same idempotency key. */
export function useWrite<Body, Answer>({ operation, topics, onDone, doneText }: Write<Body, Answer>) {
  const { name } = operation;
  return useMutation({
    mutationFn: async ({ body, reason }: { body: Body; reason: string }) => {
      const { key, isAgain } = await keyFor(name, JSON.stringify(body));
      const headers = { 'Idempotency-Key': key, 'Audit-Reason': headerText(reason) };
      for (let left = tries - 1; ; left -= 1) {
        try {
          return { answer: await operation.send(body, headers), isAgain };
        } catch (error) {
          if (isRefusal(error)) put(sentKeyOf(name), undefined);
          if (!(error instanceof NoAnswer) || left === 0) throw error;
          await new Promise((done) => setTimeout(done, 1_000 * (tries - left)));
        }
      }
    },
    onSuccess({ answer, isAgain }) {
      put(sentKeyOf(name), undefined);
      forgetDraft(name);
      const done = typeof doneText === 'string' ? doneText : doneText(answer);
      announce(isAgain ? `${done} It was sent more than once and applied once.` : done);
      void refresh(queryClient, topics);
      onDone?.(answer);
    },
  });
}

/**
 * Whether the answer proves that no send of the write took effect. 401, 403 and 429 do not: an earlier send may have
 * succeeded.
 */
export function isRefusal(error: unknown): boolean {
  return error instanceof ApiError && error.status < 500 && ![401, 403, 429].includes(error.status);
}

/** A body that was sent before gets its key again, as that send may have arrived; any other body gets a new key. */
async function keyFor(form: string, body: string): Promise<{ key: string; isAgain: boolean }> {
  const sent = JSON.parse(drafts.get().get(sentKeyOf(form)) ?? 'null') as SentWrite | null;
  const mark = await markOf(body);
  if (sent?.mark === mark) return { key: sent.key, isAgain: true };
  const key = crypto.randomUUID();
  put(sentKeyOf(form), JSON.stringify({ key, mark } satisfies SentWrite));
  return { key, isAgain: false };
}

/** A hash, stored instead of a body that may be long or contain secrets. */
async function markOf(body: string): Promise<string> {
  const hash = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(body));
  return new Uint8Array(hash).join();
}

/** Encodes a text as UTF-8 bytes, one character for each, as headers require. */
function headerText(text: string): string {
  return String.fromCharCode(...new TextEncoder().encode(text.replace(/\s+/g, ' ').trim()));
}

export interface FormOptions<Body, Answer> extends Omit<Write<Body, Answer>, 'doneText'> {
  doneText?: Write<Body, Answer>['doneText'];
  body: Body | undefined;
  label: string;
  usualReason?: string;
  note?: string;
  danger?: boolean;
  /** The form cannot be sent yet, for example while its plan loads. */
  isWaiting?: boolean;
  /** The running jobs that the write ends, which the person must confirm separately. */
  ends?: string | undefined;
  children?: ReactNode;
  cancel?: () => void;
}

export function WriteForm<Body, Answer>(options: FormOptions<Body, Answer>) {
  const { operation, body, label, usualReason = '', note, danger } = options;
  const confirmation = useConfirmation(options.ends);
  const isWaiting = options.isWaiting || !confirmation.isGiven;
  const [reason, setReason] = useDraft(operation.name, 'reason', usualReason);
  const { mutate, isPending, error } = useWrite({ doneText: `${label}: done.`, ...options });
  const form = useRef<HTMLFormElement>(null);
  useLayoutEffect(() => focusFirstField(form.current), []);
  // The second click of a double click can come before the button is rendered again.
  const isSending = useRef(false);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (body === undefined || isWaiting || isSending.current) return;
    isSending.current = true;
    const onSettled = () => {
      isSending.current = false;
    };
    mutate({ body, reason: reason.trim() || usualReason }, { onSettled });
  };
  return (
    <form className="write" onSubmit={submit} ref={form}>
      <Restored form={operation.name} />
      {options.children}
      {confirmation.box}
      <Reason note={note} reason={reason} onChange={setReason} />
      <Failure error={error} label={label} />
      <div className="buttons">
        {/* `aria-disabled`, because a button with `disabled` would lose the focus. */}
        <button
          type="submit"
          className={danger ? 'danger' : undefined}
          aria-disabled={isWaiting || isPending}
        >
          {isPending ? 'Sending…' : label}
        </button>
        {options.cancel && (
          <Button
            className="second"
            onClick={() => {
              forgetDraft(operation.name);
              options.cancel?.();
            }}
          >
            Cancel
          </Button>
        )}
      </div>
    </form>
  );
}

function useConfirmation(ends: string | undefined) {
  const [confirmed, setConfirmed] = useState<string>();
  const isGiven = ends === confirmed;
  const box = ends && (
    <Check isOn={isGiven} onChange={(isOn) => setConfirmed(isOn ? ends : undefined)} hint="">
      End {ends}
    </Check>
  );
  return { isGiven: ends === undefined || isGiven, box };
}

function Failure({ error, label }: { error: Error | null; label: string }) {
  if (!error) return null;
  return (
    <>
      <Problem error={error} />
      {error instanceof NoAnswer && (
        <p>
          No answer came, so the change may or may not have been made. Press “{label}” again, even after a
          reload: it is made only once.
        </p>
      )}
    </>
  );
}

function Restored({ form }: { form: string }) {
  const hasDraft = useHasDraft(form);
  const [wasThere] = useState(hasDraft);
  if (!wasThere || !hasDraft) return null;
  return (
    <p className="soft small" role="status">
      What you entered before is back.{' '}
      <Button className="link small" onClick={() => forgetDraft(form)}>
        Start over
      </Button>
    </p>
  );
}

interface ReasonOptions {
  note: string | undefined;
  reason: string;
  onChange: (reason: string) => void;
}

function Reason({ note = 'kept in the audit trail', reason, onChange }: ReasonOptions) {
  const id = useId();
  return (
    <>
      <label htmlFor={id}>
        Reason <span className="soft">({note})</span>
      </label>
      <input
        id={id}
        data-reason
        value={reason}
        onChange={(event) => onChange(event.target.value)}
        required
        maxLength={300}
        autoComplete="off"
      />
    </>
  );
}

interface DialogOptions<Body, Answer> extends Omit<FormOptions<Body, Answer>, 'cancel'> {
  title: string;
  cli?: string;
  close: () => void;
}

export function WriteDialog<Body, Answer>(options: DialogOptions<Body, Answer>) {
  const { title, cli, close, ...form } = options;
  return (
    <Dialog title={title} onClose={close}>
      <WriteForm onDone={close} {...form} cancel={close} />
      {cli && <AsCommand cli={cli} operation={form.operation.name} />}
    </Dialog>
  );
}

const prefix = 'andromeda-draft ';
/** The longest draft in session storage, which holds some megabytes. Others last until the page reloads. */
const longest = 3 * 2 ** 20;

const drafts = createSource<ReadonlyMap<string, string>>(
  new Map(Object.entries(sessionStorage).filter(([key]) => key.startsWith(prefix))),
);

const keyOf = (form: string, field = '') => `${prefix}${personOfPage()} ${form}#${field}`;
/** The key of a form's last send. It does not count as a draft, so closing the form keeps it. */
const sentKeyOf = (form: string) => keyOf(`sent ${form}`);

/**
 * `useState` for a field whose value survives reloads and sign-outs: session storage keeps it, by person, so that no
 * person sees another's text. Possible secrets (`isSecret`) last until the page reloads. `initial` is not stored.
 */
export function useDraft<Value>(
  form: string,
  field: string,
  initial: Value,
  isSecret: (value: Value) => boolean = () => false,
): [Value, (value: Value) => void] {
  const key = keyOf(form, field);
  const text = drafts.use((all) => all.get(key));
  const value = text === undefined ? initial : (JSON.parse(text) as Value);
  const set = (next: Value) => {
    const json = JSON.stringify(next);
    put(key, json === JSON.stringify(initial) ? undefined : json, !isSecret(next));
  };
  return [value, set];
}

function put(key: string, json: string | undefined, isKept = true): void {
  const all = new Map(drafts.get());
  if (json === undefined) all.delete(key);
  else all.set(key, json);
  try {
    if (json !== undefined && isKept && json.length <= longest) sessionStorage.setItem(key, json);
    else sessionStorage.removeItem(key);
  } catch {
    sessionStorage.removeItem(key);
  }
  drafts.set(all);
}

export function isKept(form: string): boolean {
  const begin = keyOf(form);
  return [...drafts.get().keys()].every(
    (key) => !key.startsWith(begin) || Object.hasOwn(sessionStorage, key),
  );
}

function useHasDraft(form: string): boolean {
  const begin = keyOf(form);
  return drafts.use((all) => [...all.keys()].some((key) => key.startsWith(begin)));
}

function forgetDraft(form: string): void {
  const begin = keyOf(form);
  for (const key of drafts.get().keys()) if (key.startsWith(begin)) put(key, undefined);
}
