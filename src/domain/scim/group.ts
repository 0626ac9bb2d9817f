/** A SCIM Group (RFC 7643, section 4.2) as it is sent. */
import { isAttributes, valueIn, valuesOf } from './attributes.ts';
import { badScim } from './error.ts';
import { readExternalId } from './user.ts';

export const groupSchema = 'urn:ietf:params:scim:schemas:core:2.0:Group';

export interface ScimGroup {
  displayName: string;
  externalId: string | undefined;
  /** The IDs of people. */
  members: string[];
}

const mostMembers = 10_000;

/** Reads a Group. Throws `invalidValue`; whether there are such people is not known here. */
export function readGroup(body: unknown): ScimGroup {
  if (!isAttributes(body)) throw badScim('invalidSyntax', 'The body is no object.');
  const displayName = valueIn(body, 'displayName');
  if (typeof displayName !== 'string' || displayName.trim() === '' || displayName.length > 500) {
    throw badScim('invalidValue', 'displayName has to be a text of 1 to 500 characters.');
  }
  const members = new Set(
    valuesOf(valueIn(body, 'members')).map((one) => {
      const value = valueIn(one, 'value') ?? one;
      if (typeof value === 'string') return value;
      throw badScim('invalidValue', 'Each of members has to have the ID of a User as its value.');
    }),
  );
  if (members.size > mostMembers) throw badScim('tooMany', `A group has at most ${mostMembers} members.`);
  return { displayName, externalId: readExternalId(body), members: [...members].sort() };
}
