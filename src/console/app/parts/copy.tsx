/** A line to copy, and the popover that says how to do the same in a terminal or over the API. */
import { useId, useRef, useState } from 'react';

export function CopyLine({ text, label }: { text: string; label: string }) {
  const [said, setSaid] = useState<string>();
  const line = useRef<HTMLPreElement>(null);
  const copy = async () => {
    const isCopied = await navigator.clipboard.writeText(text).then(
      () => true,
      () => false,
    );
    // Where the browser does not let a page copy, the person does.
    if (!isCopied && line.current) getSelection()?.selectAllChildren(line.current);
    setSaid(isCopied ? 'Copied' : 'Ctrl/⌘ C');
    setTimeout(() => setSaid(undefined), 2_000);
  };
  return (
    <div className="copy">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a line that scrolls must be reachable by keyboard */}
      <pre ref={line} tabIndex={0}>
        {text}
      </pre>
      <button type="button" className="second small" onClick={copy} aria-label={`Copy: ${label}`}>
        {said ?? 'Copy'}
      </button>
      <span className="hidden" role="status">
        {said}
      </span>
    </div>
  );
}

export interface CommandOf {
  /** The same on the command line. */
  cli: string;
  /** Which operation it is, such as `POST /me/ssh-keys`, and of which API. */
  operation: string;
  api: 'Business' | 'Platform';
}

export function AsCommand({ cli, operation, api }: CommandOf) {
  const id = useId();
  return (
    <>
      <button type="button" className="link small" popoverTarget={id}>
        Show command
      </button>
      <div id={id} popover="auto" className="popover">
        <p className="label">In a terminal</p>
        <CopyLine text={cli} label="the command" />
        <p className="label">{api} API operation</p>
        <CopyLine text={operation} label="the operation" />
      </div>
    </>
  );
}
