/** Email addresses, as far as they name people here. */

const longest = 254;

/** Whether `text` can be an address: something without spaces and invisible characters on both sides of one @. */
export function isEmail(text: string): boolean {
  return text.length <= longest && /^[^@\s\p{C}]+@[^@\s\p{C}]+$/u.test(text);
}

/**
 * An address, or a domain, as it is kept and compared: the letters A to Z are small. Other letters stay as they are, since
 * some that look alike become ASCII when folded (the Kelvin sign becomes k), and then two people are one.
 */
export function foldEmail(text: string): string {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}
