/** A line to copy, and the popover that says how to do the same in a terminal or over the API. */
import { useId, useRef, useState } from 'react';
import { Button } from './controls.tsx';

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
      <Button className="second small" onClick={copy} aria-label={`Copy: ${label}${said ? `. ${said}` : ''}`}>
        {said ?? 'Copy'}
      </Button>
      <span className="hidden" role="status">
        {said}
      </span>
    </div>
  );
}

/** A text as one argument of a command line. */
export function quoted(text: string): string {
  return /^[\w@.:+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

export interface CommandOf {
  /** The same on the command line; left out: the operation, called by its name. */
  cli?: string;
  /** Which operation it is, such as `POST /me/ssh-keys`. Those of clusters are of the Platform API, all others of Business. */
  operation: string;
}

export function AsCommand({ operation, cli = `andromeda call business ${operation}` }: CommandOf) {
  const id = useId();
  return (
    <>
      <Button className="link small" popoverTarget={id}>
        Show command
      </Button>
      <div id={id} popover="auto" className="popover">
        <p className="label">In a terminal</p>
        <CopyLine text={cli} label="the command" />
        <p className="label">{/^\w+ \/clusters/.test(operation) ? 'Platform' : 'Business'} API operation</p>
        <CopyLine text={operation} label="the operation" />
      </div>
    </>
  );
}
