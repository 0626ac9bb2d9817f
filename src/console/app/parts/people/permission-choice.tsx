/** A choice of permissions from the catalog, each without an end or until a time. */
import { useQuery } from '@tanstack/react-query';
import { termText } from '../../../../domain/access/request.ts';
import { readCatalog } from '../../reads.ts';
import { Check, type Edited, Loaded } from '../page.tsx';
import { Moment } from '../values.tsx';

export type Chosen = Readonly<Record<string, string | null>>;

/** Sends each key with the end that is shown, so that no permission lasts longer than the person saw. */
export function wholeBody(chosen: Chosen): { permissions: string[]; expires_at?: Chosen } {
  const permissions = Object.keys(chosen).sort();
  return { permissions, ...(permissions.length > 0 && { expires_at: { ...chosen } }) };
}

/** The chosen permissions that were not held before, or that have another end. */
export function changesOf(chosen: Chosen, before: Chosen): [key: string, end: string | null][] {
  return Object.entries(chosen).filter(([key, end]) => end !== before[key]);
}

export function endedOf(chosen: Chosen, now: number): string[] {
  return Object.keys(chosen).filter((key) => Date.parse(chosen[key] ?? '') <= now);
}

export function withoutEnded(chosen: Chosen, now: number): Chosen {
  const ended = endedOf(chosen, now);
  return Object.fromEntries(Object.entries(chosen).filter(([key]) => !ended.includes(key)));
}

export function isSameChoice(one: Chosen, other: Chosen): boolean {
  const keys = Object.keys(one);
  return keys.length === Object.keys(other).length && keys.every((key) => one[key] === other[key]);
}

export function PermissionChoice({ value: chosen, onChange }: Edited<Chosen>) {
  const catalog = useQuery(readCatalog());
  const toggle = (key: string) => {
    const { [key]: had, ...others } = chosen;
    onChange(had === undefined ? { ...chosen, [key]: null } : others);
  };
  return (
    <fieldset>
      <legend className="hidden">Permissions</legend>
      <Loaded of={catalog}>
        {(all) =>
          all.map(({ key, description }) => {
            const end = chosen[key];
            return (
              <div key={key}>
                <Check isOn={end !== undefined} onChange={() => toggle(key)} hint={description}>
                  <code>{key}</code>
                </Check>
                {end !== undefined && (
                  <EndChoice
                    of={key}
                    value={end}
                    onChange={(other) => onChange({ ...chosen, [key]: other })}
                  />
                )}
              </div>
            );
          })
        }
      </Loaded>
    </fieldset>
  );
}

/** The terms of access that forms offer, in hours. */
export const terms = [4, 24, 7 * 24, 30 * 24, 90 * 24, 365 * 24];
const hourMs = 3_600_000;

function EndChoice({ of: key, value: end, onChange }: Edited<string | null> & { of: string }) {
  const choose = (value: string) => {
    if (value === 'never') onChange(null);
    else if (value !== 'until') onChange(new Date(Date.now() + Number(value) * hourMs).toISOString());
  };
  return (
    <div className="end">
      <select
        aria-label={`Duration of ${key}`}
        value={end === null ? 'never' : 'until'}
        onChange={(event) => choose(event.target.value)}
      >
        <option value="never">no end date</option>
        {terms.map((hours) => (
          <option key={hours} value={hours}>
            {termText(hours)}
          </option>
        ))}
        <option value="until" disabled={end === null}>
          until
        </option>
      </select>
      {end !== null && (
        <input
          type="datetime-local"
          aria-label={`End of ${key} (your local time)`}
          value={localText(end)}
          onChange={(event) => {
            // The field is empty while its date is incomplete: the earlier end stays until then.
            if (event.target.value !== '') onChange(new Date(event.target.value).toISOString());
          }}
        />
      )}
    </div>
  );
}

/** Formats a time for an input of type `datetime-local`, to the minute. */
function localText(end: string): string {
  const at = new Date(end);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

export function ChoiceText({ chosen, before = {} }: { chosen: Chosen; before?: Chosen }) {
  return (
    <ul className="plain">
      {changesOf(chosen, before).map(([key, end]) => (
        <li key={key}>
          {before[key] === undefined && 'Gains '}
          {key}
          {end !== null ? <>, until {<Moment at={end} />}</> : ', with no end date'}.
        </li>
      ))}
    </ul>
  );
}
