/** A modal dialog (the browser's own): focus stays in it, Escape closes it, and what opened it has the focus again. */
import { type ReactNode, useId, useLayoutEffect, useRef } from 'react';
import { Button } from './controls.tsx';

/** What is filled in first. Not the reason: where that is all, Enter that is held down would do what is only asked. */
const firstField = '[data-first], form.write :is(input, textarea, select):not([data-reason])';

/** Where a form, or a part of it, is shown in an open dialog. */
export function focusFirstField(within: HTMLElement | null): void {
  if (within?.closest('dialog')?.open) within.querySelector<HTMLElement>(firstField)?.focus();
}

export function Dialog({
  title,
  onClose,
  children,
  className = '',
}: {
  title: string;
  onClose: () => void;
  children: ReactNode;
  className?: string;
}) {
  const ref = useRef<HTMLDialogElement>(null);
  const id = useId();
  // Closed while it is still in the page: only then does the browser give the focus back.
  useLayoutEffect(() => {
    const dialog = ref.current;
    dialog?.showModal();
    focusFirstField(dialog);
    return () => dialog?.close();
  }, []);
  return (
    <dialog ref={ref} className={className} aria-labelledby={id} onClose={onClose}>
      <header>
        <h2 id={id}>{title}</h2>
        <Button className="second small" onClick={onClose}>
          Close
        </Button>
      </header>
      {children}
    </dialog>
  );
}
