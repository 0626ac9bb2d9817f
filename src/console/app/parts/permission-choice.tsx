/** The permissions of the catalog, to choose from. */

export interface Permission {
  key: string;
  description: string;
  implies: string[];
}

export function PermissionChoice({
  catalog,
  wanted,
  onChange,
}: {
  catalog: readonly Permission[];
  wanted: readonly string[];
  onChange: (wanted: readonly string[]) => void;
}) {
  const toggle = (key: string) =>
    onChange(wanted.includes(key) ? wanted.filter((one) => one !== key) : [...wanted, key]);
  return (
    <fieldset>
      <legend className="hidden">Permissions</legend>
      {catalog.map(({ key, description }) => (
        <label key={key} className="check">
          <input type="checkbox" checked={wanted.includes(key)} onChange={() => toggle(key)} />
          <span>
            <code>{key}</code> <span className="soft">{description}</span>
          </span>
        </label>
      ))}
    </fieldset>
  );
}
