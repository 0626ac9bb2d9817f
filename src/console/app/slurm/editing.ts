/** The text in the editor: the saved configuration, or an unsaved change of it. */
import { type RefObject, useCallback, useEffect, useRef, useState } from 'react';
import type { Code } from './code.ts';
import type { Stored } from './reads.ts';
import { formatConfiguration } from './text.ts';

const typingMs = 200;

/** Text that was typed and not saved. */
export interface Draft {
  /** The number of the configuration that it began from. */
  base: number;
  text: string;
}

export interface Editing {
  code: RefObject<Code | undefined>;
  /** The text as of a moment ago. */
  text: string;
  storedText: string;
  draft: Draft | undefined;
  /** What was typed does not fit into what the tab keeps. */
  isUnkept: boolean;
  /** What was in the editor before it was replaced, until something is typed. */
  replaced: string | undefined;
  typed(): void;
  /** Puts a text in place of what is in the editor; `base` is the number that it is a change of. */
  replace(text: string, base: number): void;
  /** The text stays, as a change of another number. */
  rebase(base: number): void;
  /** What was sent is what stands now. */
  saved(sent: string, stored: Stored): void;
}

export function useDraft(userId: string, clusterId: string, stored: Stored): Editing {
  const code = useRef<Code>(undefined);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const storedText = formatConfiguration(stored.configuration);
  const { draft, isUnkept, latest, keep } = useKept(userId, clusterId, storedText, stored.generation);
  const [replaced, setReplaced] = useState<string>();
  const flush = useCallback((): string => {
    stop(timer);
    const { stands, generation, draft: known } = latest.current;
    const text = code.current?.text() ?? known?.text ?? stands;
    if (text === (known?.text ?? stands)) return text;
    keep(text === stands ? undefined : { base: known?.base ?? generation, text });
    return text;
  }, [latest, keep]);
  useFlushOnLeave(flush);
  // What others save is shown where nothing was typed.
  useEffect(() => {
    if (timer.current === undefined && !latest.current.draft && code.current?.text() !== storedText)
      code.current?.setText(storedText);
  }, [latest, storedText]);
  const show = (text: string) => {
    code.current?.setText(text);
    stop(timer);
  };
  return {
    ...{ code, text: draft?.text ?? storedText, storedText, draft, isUnkept, replaced },
    typed() {
      setReplaced(undefined);
      clearTimeout(timer.current);
      timer.current = setTimeout(flush, typingMs);
    },
    replace(text, base) {
      const before = flush();
      show(text);
      keep(text === latest.current.stands ? undefined : { base, text });
      setReplaced(before === text ? undefined : before);
    },
    rebase: (base) => latest.current.draft && keep({ ...latest.current.draft, base }),
    saved(sent, { configuration, generation }) {
      const text = flush();
      const stands = formatConfiguration(configuration);
      keep(text === sent || text === stands ? undefined : { base: generation, text });
      // As it is printed from now on.
      if (text === sent && text !== stands) show(stands);
    },
  };
}

function stop(timer: RefObject<ReturnType<typeof setTimeout> | undefined>): void {
  clearTimeout(timer.current);
  timer.current = undefined;
}

/** The draft, which the tab keeps for each person and cluster, so that a reload does not lose it; `latest` has it between two renders too. */
function useKept(userId: string, clusterId: string, stands: string, generation: number) {
  const [state, setState] = useState(() => {
    const kept = readDraft(userId, clusterId);
    return { draft: kept?.text === stands ? undefined : kept, isUnkept: false };
  });
  const latest = useRef({ stands, generation, draft: state.draft });
  latest.current = { stands, generation, draft: state.draft };
  const keep = useCallback(
    (draft: Draft | undefined) => {
      latest.current.draft = draft;
      setState({ draft, isUnkept: !keepDraft(userId, clusterId, draft) });
    },
    [userId, clusterId],
  );
  return { ...state, latest, keep };
}

/** A page can go at any time: for a reload, or because the session has ended. */
function useFlushOnLeave(flush: () => void): void {
  useEffect(() => {
    window.addEventListener('pagehide', flush);
    return () => {
      window.removeEventListener('pagehide', flush);
      flush();
    };
  }, [flush]);
}

/** Longer than what the API takes. */
const longest = 3 * 2 ** 20;

function nameOf(userId: string, clusterId: string): string {
  return `andromeda-slurm-${userId}-${clusterId}`;
}

function readDraft(userId: string, clusterId: string): Draft | undefined {
  const { base, text } = JSON.parse(
    sessionStorage.getItem(nameOf(userId, clusterId)) ?? '{}',
  ) as Partial<Draft>;
  return base === undefined || text === undefined ? undefined : { base, text };
}

/** Returns whether it is kept: a tab has room for some megabytes. */
function keepDraft(userId: string, clusterId: string, draft: Draft | undefined): boolean {
  const name = nameOf(userId, clusterId);
  if (!draft) {
    sessionStorage.removeItem(name);
    return true;
  }
  if (draft.text.length > longest) return false;
  try {
    sessionStorage.setItem(name, JSON.stringify(draft));
    return true;
  } catch {
    return false;
  }
}
