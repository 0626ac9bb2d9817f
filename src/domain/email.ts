/** Email addresses, as far as they name people here. */

const longest = 254;

/** Whether `text` can be an address: something without spaces and invisible characters on both sides of one @. */
export function isEmail(text: string): boolean {
  return text.length <= longest && /^[^@\s\p{C}]+@[^@\s\p{C}]+$/u.test(text);
}
