/** The text in the editor: the saved configuration, or an unsaved change of it. */
import { type RefObject, useCallback, useEffect, useRef, useState } from 'react';
import type { Code } from './code.ts';
import { type Draft, keepDraft, readDraft } from './draft.ts';
import type { Stored } from './reads.ts';
import { formatConfiguration } from './text.ts';

const typingMs = 200;

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
  /** Takes over at once what was typed last. */
  flush(): string;
}

export function useDraft(userId: string, clusterId: string, stored: Stored): Editing {
  const code = useRef<Code>(undefined);
  const storedText = formatConfiguration(stored.configuration);
  const [state, setState] = useState(() => {
    const kept = readDraft(userId, clusterId);
    return { draft: kept?.text === storedText ? undefined : kept, isUnkept: false };
  });
  const [replaced, setReplaced] = useState<string>();
  const latest = useRef({ storedText, generation: stored.generation, draft: state.draft });
  latest.current = { storedText, generation: stored.generation, draft: state.draft };
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);

  const keep = useCallback(
    (draft: Draft | undefined) => {
      latest.current.draft = draft;
      setState({ draft, isUnkept: !keepDraft(userId, clusterId, draft) });
    },
    [userId, clusterId],
  );
  const flush = useCallback((): string => {
    clearTimeout(timer.current);
    timer.current = undefined;
    const { storedText: stands, generation, draft } = latest.current;
    const text = code.current?.text() ?? draft?.text ?? stands;
    if (text === (draft?.text ?? stands)) return text;
    keep(text === stands ? undefined : { base: draft?.base ?? generation, text });
    return text;
  }, [keep]);
  // A page can go at any time: for a reload, or because the session has ended.
  useEffect(() => {
    window.addEventListener('pagehide', flush);
    return () => {
      window.removeEventListener('pagehide', flush);
      flush();
    };
  }, [flush]);
  // What others save is shown where nothing was typed.
  useEffect(() => {
    if (timer.current === undefined && !latest.current.draft && code.current?.text() !== storedText)
      code.current?.setText(storedText);
  }, [storedText]);

  return {
    code,
    text: state.draft?.text ?? storedText,
    storedText,
    ...state,
    replaced,
    typed() {
      setReplaced(undefined);
      clearTimeout(timer.current);
      timer.current = setTimeout(flush, typingMs);
    },
    replace(text, base) {
      const before = flush();
      code.current?.setText(text);
      clearTimeout(timer.current);
      timer.current = undefined;
      keep(text === latest.current.storedText ? undefined : { base, text });
      setReplaced(before === text ? undefined : before);
    },
    rebase(base) {
      const { draft } = latest.current;
      if (draft) keep({ ...draft, base });
    },
    saved(sent, { configuration, generation }) {
      const text = flush();
      const stands = formatConfiguration(configuration);
      keep(text === sent || text === stands ? undefined : { base: generation, text });
      // As it is printed from now on.
      if (text === sent && text !== stands) {
        code.current?.setText(stands);
        clearTimeout(timer.current);
        timer.current = undefined;
      }
    },
    flush,
  };
}
