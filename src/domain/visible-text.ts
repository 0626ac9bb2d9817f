/** Makes untrusted text safe to show: it cannot control a terminal, hide, or reorder the text next to it. */

/**
 * C0 except tab and newline, DEL, C1, lone surrogates, line separators, and the characters without a shape of their own:
 * soft hyphen, zero-width, bidirectional controls, tags.
 */
const unsafe =
  /(?![\t\n])[\p{Cc}\p{Cs}\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

/** Line breaks and tabs, with the space around them. */
const breaks = /\s*[\t-\r\x85\u2028\u2029]\s*/gu;

/**
 * The text with every unsafe character as `\uXXXX`; tabs and newlines stay. JSON text keeps its meaning: its strings say the
 * same in the escaped form.
 */
export function escapeControls(text: string): string {
  return text.replace(unsafe, escaped);
}

/** The text on one line: breaks and tabs are a space, every other unsafe character is escaped. */
export function visibleLine(text: string): string {
  return escapeControls(text.replace(breaks, ' ').trim());
}

/** A name of at most `length` characters as they are shown, the last of them `…` where it was longer. */
export function visibleName(name: string, length = 80): string {
  // More than is shown is not worth looking at: a name may have megabytes.
  const shown = [...visibleLine(name.slice(0, 4 * length))];
  if (shown.length <= length && name.length <= 4 * length) return shown.join('');
  const kept = shown.slice(0, length - 1).join('');
  return `${kept.replace(/\\u?[\da-f]{0,3}$/, '').trimEnd()}…`;
}

/** One escape for each UTF-16 unit, as JSON has it. */
function escaped(character: string): string {
  return character
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('');
}
