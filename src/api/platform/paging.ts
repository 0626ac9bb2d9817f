/** Page tokens: opaque to callers, bound to the list they came from, and stable while items come and go. */
import { DomainError } from '../../domain/error.ts';
import { isUuid } from '../../domain/id.ts';

/** A token for the page behind the item `id` of `list`. */
export function pageToken(list: string, id: string): string {
  return Buffer.from(`${list}\n${id}`).toString('base64url');
}

/** The ID that a token points behind. Throws `invalid_pagination` for anything but a token of this very list. */
export function readPageToken(list: string, token: string): string {
  const [from, id = ''] = Buffer.from(token, 'base64url').toString().split('\n');
  // Decoding forgives what encoding never made, so only a token that comes out the same again is one.
  if (from !== list || !isUuid(id) || pageToken(list, id) !== token) {
    throw new DomainError('invalid_pagination', '`after` is not a page token of this list.');
  }
  return id;
}
