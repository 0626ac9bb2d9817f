/** Buttons and fields. */
import { type ComponentProps, type ReactNode, useId, useLayoutEffect, useRef, useState } from 'react';

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

/** Keys to choose from, each with what it means. */
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
    // Where the browser does not let a page copy, the person does.
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

/** A text as one argument of a command line. */
export function quoted(text: string): string {
  return /^[\w@.:+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

export interface CommandOf {
  /** The same on the command line; left out: the operation, called by its name. */
  cli?: string;
  /** Which operation it is, such as `POST /me/ssh-keys`. Those of clusters are of the Platform API, all others of Business. */
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

/** What is filled in first. Not the reason: where that is all, Enter that is held down would do what is only asked. */
const firstField = '[data-first], form.write :is(input, textarea, select):not([data-reason])';

/** Where a form, or a part of it, is shown in an open dialog. */
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
  // Closed while it is still in the page: only then does the browser give the focus back.
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
