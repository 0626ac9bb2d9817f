/** Text of others, which is made safe to show: it cannot control a terminal, hide, or reorder what stands next to it. */

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

/**
 * Text as both databases store it: in UTF-8, which has no half of a surrogate pair, and without NUL (U+0000), which PostgreSQL
 * does not take and where a text ends in C. Requests with either are refused; in what comes from other programs (a cluster, an SSH
 * client, an issuer), in what is searched for, and before anything is hashed or signed, U+FFFD takes their place.
 */

const nul = '\0';

export function hasNul(text: string): boolean {
  return text.includes(nul);
}

/** The text as it is read back once it was stored. */
export function storedText(text: string): string {
  return (hasNul(text) ? text.replaceAll(nul, '\ufffd') : text).toWellFormed();
}

const isOther = (value: unknown) => typeof value === 'string' && (hasNul(value) || !value.isWellFormed());

/** The same of each text among them; the list itself where that changes none. */
export function storedTexts(values: readonly unknown[]): readonly unknown[] {
  if (!values.some(isOther)) return values;
  return values.map((value) => (typeof value === 'string' ? storedText(value) : value));
}

/** The same of an object's own texts, and of lists of texts in it; the object itself where that changes none. */
export function storedTextsIn<T extends object>(given: T): T {
  const values = Object.values(given);
  if (!values.some((value) => isOther(value) || (Array.isArray(value) && value.some(isOther)))) return given;
  const entries = Object.entries(given).map(([name, value]) => [
    name,
    typeof value === 'string' ? storedText(value) : Array.isArray(value) ? storedTexts(value) : value,
  ]);
  return Object.fromEntries(entries) as T;
}

/** The first `most` characters (code points) of a text: never one half of a surrogate pair, which cannot be stored. */
export function cutText(text: string, most: number): string {
  if (text.length <= most) return text;
  return [...text.slice(0, 2 * most)].slice(0, most).join('');
}

/** The text in at most `most` characters, the last of them `…` where it was longer. */
export function shortText(text: string, most: number): string {
  return cutText(text, most) === text ? text : `${cutText(text, most - 1)}…`;
}

/** Rows as a table for spreadsheets (RFC 4180). A cell that begins like a formula gets an apostrophe, so that none is run. */
export function csv(rows: readonly (readonly (string | number)[])[]): string {
  const cell = (value: string | number) => {
    const text = String(value);
    const safe = typeof value === 'string' && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return `"${safe.replaceAll('"', '""')}"`;
  };
  return rows.map((row) => `${row.map(cell).join(',')}\r\n`).join('');
}

/** Of OpenSSH's format, PEM, PuTTY's, a JWK, or the beginning of one. */
const privateKey = /PRIVATE KEY|PuTTY-User-Key-File|Private-Lines:|b3BlbnNzaC1rZXktdjE|"d"\s*:\s*"/;
/** PEM without its first line: the DER of PKCS#1, SEC 1 or PKCS#8 begins with a version, an encrypted one names PKCS#5. */
const privateDer =
  /(^|\s)M([A-H].CAQ[AE]|I[GH].AgE[AB]|II..[AQgw]IBA)[\w+/]{20}|BgkqhkiG9w0BBQ|GCSqGSIb3DQEF/;
/** Base64 or hex alone that begins like no public key of SSH: a seed, or lines from the middle of a key file. */
const bareKey = /^\s*(?!AAAA)[\w+/:-]{40,}={0,2}(\s+[\w+/:-]+={0,2})*\s*$/;

/** Whether there is a private key in a text, or the beginning of one. */
export function hasPrivateKey(text: string): boolean {
  return privateKey.test(text) || privateDer.test(text);
}

/** Whether there may be one, or a part of one. */
export function mayHavePrivateKey(text: string): boolean {
  return hasPrivateKey(text) || bareKey.test(text);
}
