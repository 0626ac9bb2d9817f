/** The lines in which two texts differ, with some lines of context around each change. */
import { structuredPatch } from 'diff';
import { useMemo } from 'react';
import { escapeControls } from '../../../domain/text.ts';

const context = 3;
const mostLines = 500;
/** The timeout of a comparison in ms, which long texts without common lines would exceed. */
const timeout = 500;

export function Difference({ before, after }: { before: string; after: string }) {
  const rows = useMemo(() => rowsOf(before, after), [before, after]);
  if (!rows) return <p className="soft">Too much is different to show it line by line.</p>;
  return (
    <section className="difference" aria-label="Changes">
      {rows.length === 0 && <p className="soft">There is no difference.</p>}
      {rows.slice(0, mostLines).map(({ id, kind, text }) => (
        <Row key={id} kind={kind} text={text} />
      ))}
      {rows.length > mostLines && <p className="soft">And {rows.length - mostLines} more lines.</p>}
    </section>
  );
}

function rowsOf(before: string, after: string) {
  const patch = structuredPatch('', '', before, after, '', '', { context, timeout });
  return patch?.hunks.flatMap(({ newStart, lines }, hunk) =>
    [`@Line ${newStart}`, ...lines.filter((line) => !line.startsWith('\\'))].map((line, index) => ({
      id: `${hunk}/${index}`,
      kind: line.charAt(0),
      text: escapeControls(line.slice(1)),
    })),
  );
}

function Row({ kind, text }: { kind: string; text: string }) {
  if (kind === '@') return <p className="soft">{text}</p>;
  if (kind === '-') return <del>{text}</del>;
  return kind === '+' ? <ins>{text}</ins> : <span>{text}</span>;
}
