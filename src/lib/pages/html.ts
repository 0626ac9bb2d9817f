/** HTML as tagged templates: whatever is put in is escaped, unless it is HTML made here. */
import { escapeControls } from '../../domain/visible-text.ts';

export interface Html {
  readonly html: string;
}

type Part = Html | string | number | undefined | readonly Html[];

const made = new WeakSet<Html>();

/** Escapes every part that `html` or `trusted` did not return, also an object of the same shape. */
export function html(strings: TemplateStringsArray, ...parts: Part[]): Html {
  return trusted(strings.reduce((text, string, i) => text + render(parts[i - 1]) + string));
}

/** Text of ours that must not be escaped: the style sheet. Never anything that came from outside. */
export function trusted(text: string): Html {
  const value = { html: text };
  made.add(value);
  return value;
}

const entities: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Text as it is shown: neither markup, nor characters that hide something or turn the order of what stands around. */
function escapeHtml(text: string): string {
  return escapeControls(text).replace(/[&<>"']/g, (character) => entities[character] ?? '');
}

function render(part: Part): string {
  if (part === undefined) return '';
  if (typeof part !== 'object') return escapeHtml(String(part));
  if ('html' in part) return made.has(part) ? part.html : escapeHtml(part.html);
  return part.map(render).join('');
}
