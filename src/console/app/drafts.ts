/**
 * What was typed into a form and not sent. The tab keeps it for its person, through reloads, sign-outs and sessions that end;
 * what may be a secret lasts until the page is loaded again. No person is shown what another one typed.
 */
import { personOfPage } from './api.ts';
import { createSource } from './source.ts';

const prefix = 'andromeda-draft ';
/** A tab has room for some megabytes; what is longer, or has no room, lasts until the page is loaded again. */
const longest = 3 * 2 ** 20;

const drafts = createSource<ReadonlyMap<string, string>>(
  new Map(Object.entries(sessionStorage).filter(([key]) => key.startsWith(prefix))),
);

const keyOf = (form: string, field = '') => `${prefix}${personOfPage()} ${form}#${field}`;

/** The value of a field, as `useState` has it, and `initial` while nothing else was typed. `isSecret`: what is not to be kept. */
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

function put(key: string, json: string | undefined, isKept: boolean): void {
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

/** Whether the tab keeps all that was typed into a form. */
export function isKept(form: string): boolean {
  const begin = keyOf(form);
  return [...drafts.get().keys()].every(
    (key) => !key.startsWith(begin) || Object.hasOwn(sessionStorage, key),
  );
}

export function useHasDraft(form: string): boolean {
  const begin = keyOf(form);
  return drafts.use((all) => [...all.keys()].some((key) => key.startsWith(begin)));
}

export function forgetDraft(form: string): void {
  const begin = keyOf(form);
  for (const key of drafts.get().keys()) if (key.startsWith(begin)) put(key, undefined, false);
}
