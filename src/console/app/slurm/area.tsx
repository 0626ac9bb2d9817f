/** A text area with line numbers. */
import { type RefObject, useLayoutEffect, useRef } from 'react';

interface AreaOptions {
  label: string;
  text: string;
  hint: string;
  isInvalid: boolean;
  describedBy: string;
  /** Undefined: the text is read-only. */
  onChange: ((text: string) => void) | undefined;
  area: RefObject<HTMLTextAreaElement | null>;
}

export function TextArea({ label, text, hint, isInvalid, describedBy, onChange, area }: AreaOptions) {
  const numbers = useRef<HTMLPreElement>(null);
  // Not the prop `value`: React would keep a second copy of a text that may be long.
  useLayoutEffect(() => {
    if (area.current && area.current.value !== text) area.current.value = text;
  }, [area, text]);
  return (
    <div className="area">
      <pre ref={numbers} aria-hidden="true">
        {Array.from(text.split('\n'), (_, index) => index + 1).join('\n')}
      </pre>
      <textarea
        ref={area}
        aria-label={label}
        aria-invalid={isInvalid}
        aria-describedby={describedBy}
        wrap="off"
        rows={18}
        spellCheck={false}
        autoComplete="off"
        autoCapitalize="off"
        placeholder={hint}
        readOnly={onChange === undefined}
        onChange={(event) => onChange?.(event.target.value)}
        onScroll={({ currentTarget }) => {
          if (numbers.current) numbers.current.scrollTop = currentTarget.scrollTop;
        }}
      />
    </div>
  );
}

export function goToLine(area: HTMLTextAreaElement, line: number): void {
  const lines = area.value.split('\n');
  const start = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
  area.focus();
  area.setSelectionRange(start, start + (lines[line - 1] ?? '').length);
  area.scrollTo(0, (area.scrollHeight * Math.max(0, line - 4)) / lines.length);
}
