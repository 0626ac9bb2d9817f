/** Text on its way into HTML. */

/** Any text, as it is: safe between tags and inside quotes. */
export function text(value = ''): string {
  return value.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** A description of the document, with its `code` marked as such. */
export function prose(value = ''): string {
  return text(value).replace(/`([^`]+)`/g, '<code>$1</code>');
}
