/** Buttons and fields. */
import type { ComponentProps, ReactNode } from 'react';

/** One that sends no form. */
export function Button(props: ComponentProps<'button'>) {
  return <button type="button" {...props} />;
}

export interface Edited<Value> {
  value: Value;
  onChange: (value: Value) => void;
}

/** A field with its label; `hint` is said in brackets behind that. */
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
