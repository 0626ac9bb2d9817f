/** Components of pages: title with a summary sentence, panels, buttons, fields, dialogs, lines to copy. */
import type { UseQueryResult } from '@tanstack/react-query';
import {
  type ComponentProps,
  type ReactNode,
  useEffect,
  useId,
  useLayoutEffect,
  useRef,
  useState,
} from 'react';
import { ApiError } from '../api.ts';

interface PageOptions {
  title: string;
  isWide?: boolean;
  sentence?: ReactNode;
  actions?: ReactNode;
  children?: ReactNode;
}

export function Page({ title, sentence, actions, isWide = false, children }: PageOptions) {
  useEffect(() => {
    document.title = `${title} · Andromeda`;
  }, [title]);
  return (
    <article className={isWide ? 'page wide' : 'page'}>
      <header>
        <h1>{title}</h1>
        {actions && <div className="actions">{actions}</div>}
        {sentence && <p className="sentence">{sentence}</p>}
      </header>
      {children}
    </article>
  );
}

interface PanelOptions extends Partial<CommandOf> {
  title: ReactNode;
  tools?: ReactNode;
  children: ReactNode;
}

export function Panel({ title, tools, operation, children, ...command }: PanelOptions) {
  return (
    <section className="panel">
      <header>
        <h2>{title}</h2>
        {(tools || operation) && (
          <div className="tools">
            {tools}
            {operation && <AsCommand {...command} operation={operation} />}
          </div>
        )}
      </header>
      {children}
    </section>
  );
}

/** The section of a form that previews the change. */
export function Effects({ isWaiting, children }: { isWaiting: boolean; children: ReactNode }) {
  return (
    <section className="plan" aria-label="What will change" aria-busy={isWaiting}>
      <h3>What will change</h3>
      <div role="status">{children}</div>
    </section>
  );
}

export function Facts({ of, className = 'facts' }: { of: Record<string, ReactNode>; className?: string }) {
  return (
    <dl className={className}>
      {Object.entries(of)
        .filter(([, value]) => value !== undefined)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

export function Empty({ children, action }: { children: ReactNode; action?: ReactNode }) {
  return (
    <div className="empty">
      <p>{children}</p>
      {action}
    </div>
  );
}

export type Reading<T> = Pick<UseQueryResult<T>, 'data' | 'error'> & { refetch: () => unknown };

/** Joins reads into one of a list: it has data once all of them have, and an error where one has. */
export function allOf<T>(reads: readonly Reading<T>[]): Reading<T[]> {
  const data = reads.flatMap((one) => (one.data === undefined ? [] : [one.data]));
  return {
    data: data.length === reads.length ? data : undefined,
    error: reads.find(({ error }) => error)?.error ?? null,
    refetch: () => Promise.all(reads.map((one) => one.error && one.refetch())),
  } as Reading<T[]>;
}

/** Joins reads as `allOf` does, by name. */
export function together<Reads extends Record<string, Reading<unknown>>>(
  reads: Reads,
): Reading<{ [Name in keyof Reads]: Reads[Name] extends Reading<infer T> ? T : never }> {
  const all = allOf(Object.values(reads));
  const names = Object.keys(reads);
  const data = all.data && Object.fromEntries(names.map((name, index) => [name, all.data?.[index]]));
  return { ...all, data } as never;
}

/** Whether the data is complete and current: only then may a page count or save it. */
export function isWhole({ data, error }: Reading<unknown>): boolean {
  return data !== undefined && !error;
}

/** A sentence about a read's data; nothing unless the data is complete and current. */
export function said<T>(of: Reading<T>, sentence: (data: T) => ReactNode): ReactNode {
  return isWhole(of) && sentence(of.data as T);
}

/** Shows a read's data, or that it is loading. An error is shown even if there is older data. */
export function Loaded<T>({ of, children }: { of: Reading<T>; children: (data: T) => ReactNode }) {
  if (of.data === undefined && !of.error) return <Loading />;
  return (
    <>
      {of.error && <Problem error={of.error} isOld={of.data !== undefined} again={() => void of.refetch()} />}
      {of.data !== undefined && children(of.data)}
    </>
  );
}

export function Loading() {
  return (
    <p className="loading" role="status">
      Loading…
    </p>
  );
}

interface ProblemOptions {
  error: unknown;
  /** The page shows older data, because the last read failed. */
  isOld?: boolean;
  again?: () => void;
}

export function Problem({ error, isOld = false, again }: ProblemOptions) {
  const text = error instanceof Error ? error.message : 'Something went wrong.';
  const isTheirs = error instanceof ApiError && error.status < 500;
  return (
    <div className="problem" role="alert">
      <p>
        {isOld && 'What is below may have changed: it could not be read again. '}
        {text}
      </p>
      {again && !isTheirs && (
        <Button className="second" onClick={again}>
          Try again
        </Button>
      )}
    </div>
  );
}

export function NoClusters() {
  return (
    <Empty>
      You cannot see any clusters yet. Request <code>clusters.read</code> on “Access”.
    </Empty>
  );
}

export function Mark() {
  return (
    <svg className="mark" viewBox="0 0 32 32" aria-hidden="true">
      <g transform="rotate(-32 16 16)" fill="none" stroke="currentColor">
        <ellipse cx="16" cy="16" rx="14.5" ry="7" strokeWidth="1.6" opacity=".4" />
        <ellipse cx="16" cy="16" rx="9.5" ry="4.4" strokeWidth="1.8" opacity=".75" />
        <ellipse cx="16" cy="16" rx="4.4" ry="2.5" fill="currentColor" />
      </g>
    </svg>
  );
}

export function Button(props: ComponentProps<'button'>) {
  return <button type="button" {...props} />;
}

export interface Edited<Value> {
  value: Value;
  onChange: (value: Value) => void;
}

export interface Labelled<Value> extends Edited<Value> {
  id: string;
  label: string;
  hint?: string;
}

function Label({ id, label, hint }: Pick<Labelled<unknown>, 'id' | 'label' | 'hint'>) {
  return (
    <label htmlFor={id}>
      {label} {hint && <span className="soft">({hint})</span>}
    </label>
  );
}

type InputOptions = Omit<ComponentProps<'input'>, keyof Labelled<string>>;

export function Field({ label, hint, onChange, ...input }: InputOptions & Labelled<string>) {
  return (
    <>
      <Label id={input.id} label={label} {...(hint && { hint })} />
      <input {...input} onChange={(event) => onChange(event.target.value)} />
    </>
  );
}

interface SelectOptions<Value> extends Labelled<Value> {
  options: readonly (readonly [Value, text: string])[];
}

export function Select<Value extends string | number>({
  value,
  onChange,
  options,
  ...of
}: SelectOptions<Value>) {
  const choose = (index: number) => onChange(options[index]?.[0] ?? value);
  return (
    <>
      <Label {...of} />
      <select id={of.id} value={value} onChange={(event) => choose(event.target.selectedIndex)}>
        {options.map(([one, text]) => (
          <option key={one} value={one}>
            {text}
          </option>
        ))}
      </select>
    </>
  );
}

interface CheckOptions {
  isOn: boolean;
  onChange: (isOn: boolean) => void;
  children: ReactNode;
  hint: string;
}

export function Check({ isOn, onChange, children, hint }: CheckOptions) {
  return (
    <label className="check">
      <input type="checkbox" checked={isOn} onChange={(event) => onChange(event.target.checked)} />
      <span>
        {children} <span className="soft">{hint}</span>
      </span>
    </label>
  );
}

interface ListOptions<Key> {
  legend: ReactNode;
  items: readonly { key: Key; hint: string }[];
  chosen: readonly Key[];
  onChange: (chosen: readonly Key[]) => void;
}

/** Check boxes for keys, each with its description. */
export function CheckList<Key extends string>({ legend, items, chosen, onChange }: ListOptions<Key>) {
  const others = (key: Key) => chosen.filter((one) => one !== key);
  return (
    <fieldset>
      {legend}
      {items.map(({ key, hint }) => (
        <Check
          key={key}
          isOn={chosen.includes(key)}
          onChange={(isOn) => onChange(isOn ? [...others(key), key] : others(key))}
          hint={hint}
        >
          <code>{key}</code>
        </Check>
      ))}
    </fieldset>
  );
}

export function CopyLine({ text, label }: { text: string; label: string }) {
  const [said, setSaid] = useState<string>();
  const line = useRef<HTMLPreElement>(null);
  const copy = async () => {
    const isCopied = await navigator.clipboard.writeText(text).then(
      () => true,
      () => false,
    );
    // Where the browser forbids a page to copy, the line is selected for the person to copy.
    if (!isCopied && line.current) getSelection()?.selectAllChildren(line.current);
    setSaid(isCopied ? 'Copied' : 'Ctrl/⌘ C');
    setTimeout(() => setSaid(undefined), 2_000);
  };
  return (
    <div className="copy">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a line that scrolls must be reachable by keyboard */}
      <pre ref={line} tabIndex={0}>
        {text}
      </pre>
      <Button className="second small" onClick={copy} aria-label={`Copy: ${label}${said ? `. ${said}` : ''}`}>
        {said ?? 'Copy'}
      </Button>
      <span className="hidden" role="status">
        {said}
      </span>
    </div>
  );
}

/** Quotes a text as one argument of a shell command. */
export function quoted(text: string): string {
  return /^[\w@.:+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

export interface CommandOf {
  /** The equivalent command; left out: `andromeda call` with the operation. */
  cli?: string;
  /** The operation, such as `POST /me/ssh-keys`. `/clusters…` belongs to the Platform API, all others to Business. */
  operation: string;
}

export function AsCommand({ operation, cli = `andromeda call business ${operation}` }: CommandOf) {
  const id = useId();
  return (
    <>
      <Button className="link small" popoverTarget={id}>
        Show command
      </Button>
      <div id={id} popover="auto" className="popover">
        <p className="label">In a terminal</p>
        <CopyLine text={cli} label="the command" />
        <p className="label">{/^\w+ \/clusters/.test(operation) ? 'Platform' : 'Business'} API operation</p>
        <CopyLine text={operation} label="the operation" />
      </div>
    </>
  );
}

/** The field to focus first. Never the reason: if it is the only field, a held Enter key would confirm the dialog. */
const firstField = '[data-first], form.write :is(input, textarea, select):not([data-reason])';

/** Only in an open dialog: a form on a page does not take the focus. */
export function focusFirstField(within: HTMLElement | null): void {
  if (within?.closest('dialog')?.open) within.querySelector<HTMLElement>(firstField)?.focus();
}

export function Dialog({
  title,
  onClose,
  children,
  className = '',
}: {
  title: string;
  onClose: () => void;
  children: ReactNode;
  className?: string;
}) {
  const ref = useRef<HTMLDialogElement>(null);
  const id = useId();
  // Closed in a layout effect, while it is still in the document: only then does the browser restore the focus.
  useLayoutEffect(() => {
    const dialog = ref.current;
    dialog?.showModal();
    focusFirstField(dialog);
    return () => dialog?.close();
  }, []);
  return (
    <dialog ref={ref} className={className} aria-labelledby={id} onClose={onClose}>
      <header>
        <h2 id={id}>{title}</h2>
        <Button className="second small" onClick={onClose}>
          Close
        </Button>
      </header>
      {children}
    </dialog>
  );
}
