/** What a list is narrowed by, as its address has it. */
import type { FormEvent, ReactNode } from 'react';

export interface FilterField {
  name: string;
  label: string;
  type: 'text' | 'date';
  hint: string;
}

/** To be given the address as `key`, so that it shows what that says. */
export function Filters({
  fields,
  values,
  onSubmit,
  clear,
}: {
  fields: readonly FilterField[];
  values: Record<string, unknown>;
  onSubmit: (typed: Record<string, unknown>) => void;
  /** A link to the whole list. */
  clear: ReactNode;
}) {
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    onSubmit(Object.fromEntries(new FormData(event.currentTarget)));
  };
  return (
    <form className="audit-filters" onSubmit={submit}>
      {fields.map(({ name, label, type, hint }) => (
        <label key={name}>
          {label}
          <input
            name={name}
            type={type}
            placeholder={hint}
            defaultValue={String(values[name] ?? '')}
            maxLength={200}
          />
        </label>
      ))}
      <div className="buttons">
        <button type="submit" className="second">
          Show
        </button>
        {clear}
      </div>
    </form>
  );
}
