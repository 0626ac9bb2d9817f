/** A text area for what is read line by line: its lines have numbers, and those in which something is wrong are marked. */
import { type KeyboardEvent, memo, type ReactNode, type RefObject, useLayoutEffect, useRef } from 'react';

interface AreaOptions {
  /** What it is, for screen readers. */
  label: string;
  text: string;
  /** Shown while it is empty. */
  hint: string;
  /** Lines in which something is wrong, and the element that says what. */
  marked?: readonly number[];
  describedBy?: string;
  /** Left out: it can be read only. */
  onChange?: ((text: string) => void) | undefined;
  /** Ctrl/⌘ S. */
  onSave?: () => void;
  area?: RefObject<HTMLTextAreaElement | null>;
}

export function TextArea({ label, text, hint, onChange, onSave, ...options }: AreaOptions) {
  const own = useRef<HTMLTextAreaElement>(null);
  const { marked = [], describedBy, area = own } = options;
  const numbers = useRef<HTMLPreElement>(null);
  // With `value`, React would keep the text, which may be long, in the page a second time.
  useLayoutEffect(() => {
    if (area.current && area.current.value !== text) area.current.value = text;
  }, [area, text]);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 's' || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    onSave?.();
  };
  return (
    <div className="area">
      <pre ref={numbers} aria-hidden="true">
        <Numbers count={text.split('\n').length} marked={[...new Set(marked)].sort((a, b) => a - b).join()} />
      </pre>
      <textarea
        ref={area}
        aria-label={label}
        aria-invalid={marked.length > 0}
        aria-describedby={describedBy}
        wrap="off"
        rows={18}
        spellCheck={false}
        autoComplete="off"
        autoCapitalize="off"
        placeholder={hint}
        readOnly={onChange === undefined}
        onChange={(event) => onChange?.(event.target.value)}
        onKeyDown={onKeyDown}
        onScroll={({ currentTarget }) => {
          if (numbers.current) numbers.current.scrollTop = currentTarget.scrollTop;
        }}
      />
    </div>
  );
}

/** As text, since there can be tens of thousands. Those that are marked, in order, are one string, which is compared as such. */
const Numbers = memo(({ count, marked }: { count: number; marked: string }) => {
  const parts: ReactNode[] = [];
  let from = 1;
  for (const line of marked === '' ? [] : marked.split(',').map(Number)) {
    parts.push(numbersOf(from, line - 1), <mark key={line}>{numbersOf(line, line)}</mark>);
    from = line + 1;
  }
  return [...parts, numbersOf(from, count)];
});

function numbersOf(from: number, to: number): string {
  const lines = Array.from({ length: Math.max(0, to - from + 1) }, (_, index) => from + index);
  return lines.map((line) => `${String(line).padStart(5)}\n`).join('');
}

/** Selects a line, in sight. */
export function goToLine(area: HTMLTextAreaElement, line: number): void {
  const lines = area.value.split('\n');
  const start = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
  area.focus();
  area.setSelectionRange(start, start + (lines[line - 1] ?? '').length);
  area.scrollTo(0, (area.scrollHeight * Math.max(0, line - 4)) / lines.length);
}
