/** The account that this process runs as. */
import { userInfo } from 'node:os';

/** Its name, or its number where it has none, as in a container that is given any number. */
export function ownAccount(): string {
  try {
    return userInfo().username;
  } catch {
    return `user ${process.getuid?.()}`;
  }
}
