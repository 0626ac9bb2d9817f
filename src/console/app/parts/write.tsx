/**
 * A form that changes something. It asks for the reason that the audit trail keeps, and offers the last ones. One form is one
 * idempotency key, kept with what was sent until there is an answer: a second click, a reload and a dropped connection
 * all end in one change.
 */
import { useMutation } from '@tanstack/react-query';
import { type FormEvent, type ReactNode, useId, useRef, useState } from 'react';
import { ApiError, NoAnswer, queryClient } from '../api.ts';
import { giveNotice } from '../notice.ts';
import { Problem } from './page.tsx';

/** The headers of a write, for openapi-fetch. */
export interface WriteHeaders {
  'Idempotency-Key': string;
  'Audit-Reason': string;
}

interface Sent {
  key: string;
  body: string;
}

const reasonsKey = 'andromeda-reasons';
const mostReasons = 5;
const tries = 4;

export interface Write<Body> {
  /** Which form it is, also after a reload. */
  form: string;
  /** Does it. */
  send(body: Body, headers: WriteHeaders): Promise<unknown>;
  /** Topics that it changes, read again at once. */
  topics: readonly string[];
  onDone?: () => void;
}

/** Sends a write, again where no answer came, always under one key. */
export function useWrite<Body>({ form, send, topics, onDone }: Write<Body>) {
  return useMutation({
    mutationFn: async ({ body, reason }: { body: Body; reason: string }) => {
      giveNotice(undefined);
      const { key, isAgain } = keyFor(form, JSON.stringify(body));
      const headers = { 'Idempotency-Key': key, 'Audit-Reason': headerText(reason) };
      for (let left = tries - 1; ; left -= 1) {
        try {
          await send(body, headers);
          return isAgain;
        } catch (error) {
          if (isRefusal(error)) forget(form);
          if (!(error instanceof NoAnswer) || left === 0) throw error;
          await new Promise((done) => setTimeout(done, 1_000 * (tries - left)));
        }
      }
    },
    onSuccess(isAgain, { reason }) {
      forget(form);
      if (isAgain) giveNotice('Done. It was sent more than once and applied once.');
      typedReason.forget(form);
      keepReason(reason);
      const changed = new Set(topics);
      void queryClient.invalidateQueries({
        predicate: ({ meta }) => ((meta?.['topics'] ?? []) as string[]).some((topic) => changed.has(topic)),
      });
      onDone?.();
    },
  });
}

/**
 * Whether it is certain that nothing was done, however often it was sent. 401, 403 and 429 leave that open: such an answer
 * does not say what an earlier send did.
 */
export function isRefusal(error: unknown): boolean {
  return error instanceof ApiError && error.status < 500 && ![401, 403, 429].includes(error.status);
}

/** Another body is another change; the same one again is the one that may have arrived. */
function keyFor(form: string, body: string): { key: string; isAgain: boolean } {
  const name = `andromeda-form-${form}`;
  const sent = JSON.parse(sessionStorage.getItem(name) ?? unkept.get(name) ?? 'null') as Sent | null;
  const mark = markOf(body);
  if (sent?.body === mark) return { key: sent.key, isAgain: true };
  const key = crypto.randomUUID();
  keep(name, JSON.stringify({ key, body: mark } satisfies Sent));
  return { key, isAgain: false };
}

/** What the tab had no room for: it lasts until the page is loaded again. */
const unkept = new Map<string, string>();

function keep(name: string, text: string): void {
  try {
    sessionStorage.setItem(name, text);
  } catch {
    unkept.set(name, text);
  }
}

const longestKept = 10_000;

/**
 * What tells a body from others: itself or, where it is long, its length and a hash (FNV-1a), since a tab keeps a few megabytes
 * only. Two that were taken for one would be refused as such (`idempotency_mismatch`).
 */
function markOf(body: string): string {
  if (body.length <= longestKept) return body;
  let hash = 0x811c9dc5;
  for (let at = 0; at < body.length; at += 1) hash = Math.imul(hash ^ body.charCodeAt(at), 0x01000193);
  return `${body.length} ${hash >>> 0}`;
}

/** The reason as it was typed, until it was sent: a session can end before that. */
const typedReason = {
  of: (form: string) => sessionStorage.getItem(`andromeda-reason-${form}`) ?? '',
  keep: (form: string, reason: string) => keep(`andromeda-reason-${form}`, reason),
  forget: (form: string) => sessionStorage.removeItem(`andromeda-reason-${form}`),
};

function forget(form: string): void {
  unkept.delete(`andromeda-form-${form}`);
  sessionStorage.removeItem(`andromeda-form-${form}`);
}

/** A header carries bytes; these are those of the text in UTF-8. */
function headerText(text: string): string {
  return String.fromCharCode(...new TextEncoder().encode(text.replace(/\s+/g, ' ').trim()));
}

function lastReasons(): string[] {
  return JSON.parse(localStorage.getItem(reasonsKey) ?? '[]') as string[];
}

function keepReason(reason: string): void {
  const others = lastReasons().filter((one) => one !== reason);
  localStorage.setItem(reasonsKey, JSON.stringify([reason, ...others].slice(0, mostReasons)));
}

/** The form itself: its fields, the reason, the button. */
export function WriteForm<Body>({
  write,
  body,
  label,
  usualReason = '',
  note = 'kept in the audit trail',
  danger = false,
  isWaiting = false,
  children,
  cancel,
}: {
  write: Write<Body>;
  /** What would be sent now; undefined while that is not whole. */
  body: Body | undefined;
  label: string;
  usualReason?: string;
  /** Who reads the reason. */
  note?: string;
  danger?: boolean;
  /** Something must be shown before it can be sent. */
  isWaiting?: boolean;
  children?: ReactNode;
  cancel?: () => void;
}) {
  const [reason, setReason] = useState(() => usualReason || typedReason.of(write.form));
  const mutation = useWrite(write);
  // The second click of two can come before the button is drawn anew.
  const isSending = useRef(false);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (body === undefined || isWaiting || isSending.current) return;
    isSending.current = true;
    const onSettled = () => {
      isSending.current = false;
    };
    mutation.mutate({ body, reason: reason.trim() || usualReason }, { onSettled });
  };
  return (
    <form className="write" onSubmit={submit}>
      {children}
      <Reason
        note={note}
        reason={reason}
        onChange={(typed) => {
          setReason(typed);
          typedReason.keep(write.form, typed);
        }}
      />
      {mutation.error && <Problem error={mutation.error} />}
      {mutation.error instanceof NoAnswer && (
        <p>
          No answer came, so the change may or may not have been made. Press “{label}” again, even after a
          reload: it is made only once.
        </p>
      )}
      <div className="buttons">
        {/* One that is disabled in earnest would lose the focus. */}
        <button
          type="submit"
          className={danger ? 'danger' : undefined}
          aria-disabled={isWaiting || mutation.isPending}
        >
          {mutation.isPending ? 'Sending…' : label}
        </button>
        {cancel && (
          <button type="button" className="second" onClick={cancel}>
            Cancel
          </button>
        )}
      </div>
    </form>
  );
}

function Reason({
  note,
  reason,
  onChange,
}: {
  note: string;
  reason: string;
  onChange: (reason: string) => void;
}) {
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
        list={`${id}-last`}
        autoComplete="off"
      />
      <datalist id={`${id}-last`}>
        {lastReasons().map((one) => (
          <option key={one} value={one} />
        ))}
      </datalist>
    </>
  );
}
