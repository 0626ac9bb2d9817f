/** The text in the editor: the saved configuration, or an unsaved change of it. */
import { useRef, useState } from 'react';
import { isKept, useDraft } from '../parts/write.tsx';
import type { Stored } from './reads.ts';
import { formatConfiguration } from './text.ts';

export interface Draft {
  base: number;
  text: string;
}

export type Editing = ReturnType<typeof useEditing>;

export function useEditing(clusterId: string, stored: Stored) {
  const form = `slurm/${clusterId}`;
  const [kept, setDraft] = useDraft<Draft | undefined>(form, 'draft', undefined);
  const [replaced, setReplaced] = useState<string>();
  const storedText = formatConfiguration(stored.configuration);
  const draft = kept?.text === storedText ? undefined : kept;
  const text = draft?.text ?? storedText;
  const latest = useRef(draft);
  latest.current = draft;
  const keep = (now: string, base: number) => setDraft(now === storedText ? undefined : { base, text: now });
  return {
    ...{ text, storedText, draft, isKept: isKept(form) },
    /** The text before the last replacement, until the person types. */
    replaced,
    typed(now: string) {
      setReplaced(undefined);
      keep(now, draft?.base ?? stored.generation);
    },
    /** Replaces the text in the editor with a change of the version `base`. */
    replace(by: string, base: number) {
      setReplaced(by === text ? undefined : text);
      keep(by, base);
    },
    rebase: (base: number) => keep(text, base),
    /** The text `sent` is saved as the version `base`; a text typed meanwhile becomes a change of it. */
    saved(sent: string, base: number) {
      const now = latest.current;
      setDraft(now && now.text !== sent ? { ...now, base } : undefined);
    },
  };
}
