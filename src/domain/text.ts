/** Makes text from users and other programs safe to show: it cannot control a terminal, hide, or reorder the text around it. */

/**
 * C0 except tab and newline, DEL, C1, lone surrogates, line separators, and the characters without a shape of their own:
 * soft hyphen, zero-width, bidirectional controls, tags.
 */
const unsafe =
  /(?![\t\n])[\p{Cc}\p{Cs}\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

/** Line breaks and tabs, with the whitespace around them. */
const breaks = /\s*[\t-\r\x85\u2028\u2029]\s*/gu;

/**
 * Writes every unsafe character as `\uXXXX`, except tabs and newlines. JSON text keeps its meaning: escaped strings
 * parse to the same values.
 */
export function escapeControls(text: string): string {
  return text.replace(unsafe, escaped);
}

/** The text on one line: breaks and tabs become a space, every other unsafe character is escaped. */
export function visibleLine(text: string): string {
  return escapeControls(text.replace(breaks, ' ').trim());
}

/** The text on one line, without any unsafe character: for a text that is stored, and not only shown. */
export function plainLine(text: string): string {
  return text.replace(breaks, ' ').replace(unsafe, '').trim();
}

/** A name on one line, cut to `length` visible characters; a cut name ends in `…`. */
export function visibleName(name: string, length = 80): string {
  // Only this much of the name is processed, since it may have megabytes.
  const shown = [...visibleLine(name.slice(0, 4 * length))];
  if (shown.length <= length && name.length <= 4 * length) return shown.join('');
  const kept = shown.slice(0, length - 1).join('');
  return `${kept.replace(/\\u?[\da-f]{0,3}$/, '').trimEnd()}…`;
}

/** One escape for each UTF-16 unit, as JSON does. */
function escaped(character: string): string {
  return character
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('');
}

/**
 * Text that both databases can store: UTF-8, without lone surrogates and without NUL (U+0000), which PostgreSQL
 * refuses and which ends a C string. Requests that contain either are refused; U+FFFD replaces them in output of
 * other programs (a cluster, an SSH client, an issuer), in search terms, and before text is hashed or signed.
 */

const nul = '\0';

export function hasNul(text: string): boolean {
  return text.includes(nul);
}

/** The text as the database returns it after it was stored. */
export function storedText(text: string): string {
  return (hasNul(text) ? text.replaceAll(nul, '\ufffd') : text).toWellFormed();
}

const isOther = (value: unknown) => typeof value === 'string' && (hasNul(value) || !value.isWellFormed());

/** Applies `storedText` to each text of the list; returns the list itself if none changes. */
export function storedTexts(values: readonly unknown[]): readonly unknown[] {
  if (!values.some(isOther)) return values;
  return values.map((value) => (typeof value === 'string' ? storedText(value) : value));
}

/** Applies `storedText` to an object's own texts and to its lists of texts; returns the object itself if none changes. */
export function storedTextsIn<T extends object>(given: T): T {
  const values = Object.values(given);
  if (!values.some((value) => isOther(value) || (Array.isArray(value) && value.some(isOther)))) return given;
  const entries = Object.entries(given).map(([name, value]) => [
    name,
    typeof value === 'string' ? storedText(value) : Array.isArray(value) ? storedTexts(value) : value,
  ]);
  return Object.fromEntries(entries) as T;
}

/** The first `most` characters (code points) of a text. It never cuts a surrogate pair in half, which the database cannot store. */
export function cutText(text: string, most: number): string {
  if (text.length <= most) return text;
  return [...text.slice(0, 2 * most)].slice(0, most).join('');
}

/** The text cut to `most` characters; a cut text ends in `…`. */
export function shortText(text: string, most: number): string {
  return cutText(text, most) === text ? text : `${cutText(text, most - 1)}…`;
}

/** Rows as CSV (RFC 4180). A cell that begins like a formula gets an apostrophe, so that no spreadsheet runs it. */
export function csv(rows: readonly (readonly (string | number)[])[]): string {
  const cell = (value: string | number) => {
    const text = String(value);
    const safe = typeof value === 'string' && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return `"${safe.replaceAll('"', '""')}"`;
  };
  return rows.map((row) => `${row.map(cell).join(',')}\r\n`).join('');
}

/** A private key in OpenSSH's format, PEM, PuTTY's or a JWK, or the beginning of one. */
const privateKey = /PRIVATE KEY|PuTTY-User-Key-File|Private-Lines:|b3BlbnNzaC1rZXktdjE|"d"\s*:\s*"/;
/** PEM without its first line: the DER of PKCS#1, SEC 1 or PKCS#8 begins with a version, an encrypted one names PKCS#5. */
const privateDer =
  /(^|\s)M([A-H].CAQ[AE]|I[GH].AgE[AB]|II..[AQgw]IBA)[\w+/]{20}|BgkqhkiG9w0BBQ|GCSqGSIb3DQEF/;
/** A line that is only base64 or hex and does not begin like an SSH public key: a seed, or lines from the middle of a key file. */
const bareKey = /^\s*(?!AAAA)[\w+/:-]{40,}={0,2}(\s+[\w+/:-]+={0,2})*\s*$/;

/** Finds a private key in a text, or the beginning of one. */
export function hasPrivateKey(text: string): boolean {
  return privateKey.test(text) || privateDer.test(text);
}

/** As `hasPrivateKey`, and also true for a possible fragment of one. */
export function mayHavePrivateKey(text: string): boolean {
  return hasPrivateKey(text) || bareKey.test(text);
}
