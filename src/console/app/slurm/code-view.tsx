/** The editor as a part of a page. It holds its text itself; the page changes it through `code`. */
import { type RefObject, useEffect, useRef } from 'react';
import { type Code, createCode } from './code.ts';
import type { Fault } from './text.ts';

interface CodeOptions {
  label: string;
  /** What it begins with. */
  text: string;
  hint?: string;
  isReadOnly?: boolean;
  original?: string | undefined;
  faults?: readonly Fault[];
  onChange?: () => void;
  onSave?: () => void;
  code?: RefObject<Code | undefined>;
}

export function CodeView(options: CodeOptions) {
  const { label, text, hint, isReadOnly = false, original, faults, onChange, onSave, code: given } = options;
  const host = useRef<HTMLDivElement>(null);
  const own = useRef<Code>(undefined);
  const code = given ?? own;
  const handlers = useRef({ onChange, onSave });
  handlers.current = { onChange, onSave };
  // biome-ignore lint/correctness/useExhaustiveDependencies: it is made once; what changes is set below
  useEffect(() => {
    if (!host.current) return;
    const made = createCode(host.current, {
      label,
      text,
      isReadOnly,
      original,
      ...(hint !== undefined && { hint }),
      onChange: () => handlers.current.onChange?.(),
      onSave: () => handlers.current.onSave?.(),
    });
    code.current = made;
    return () => {
      made.destroy();
      code.current = undefined;
    };
  }, []);
  useEffect(() => code.current?.setOriginal(original), [code, original]);
  useEffect(() => code.current?.setReadOnly(isReadOnly), [code, isReadOnly]);
  useEffect(() => code.current?.setFaults(faults ?? []), [code, faults]);
  return <div ref={host} className="code" />;
}
