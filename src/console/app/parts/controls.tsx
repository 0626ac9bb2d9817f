/** Buttons and fields. */
import type { ComponentProps, ReactNode } from 'react';

/** One that sends no form. */
export function Button(props: ComponentProps<'button'>) {
  return <button type="button" {...props} />;
}

/** A text field with its label; `hint` is said in brackets behind that. */
export function Field({
  label,
  hint,
  onChange,
  ...input
}: Omit<ComponentProps<'input'>, 'onChange'> & {
  id: string;
  label: string;
  hint?: string;
  onChange: (text: string) => void;
}) {
  return (
    <>
      <label htmlFor={input.id}>
        {label} {hint && <span className="soft">({hint})</span>}
      </label>
      <input {...input} onChange={(event) => onChange(event.target.value)} />
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
