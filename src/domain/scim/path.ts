/** Names of attributes in filters and patches: `userName`, `name.familyName`, `urn:…:User:department`. */
import { badScim, type ScimType } from './error.ts';

export interface ScimPath {
  /** The URN of an extension, whose attributes lie in an object of its own; undefined of the core schemas. */
  schema: string | undefined;
  name: string;
  sub: string | undefined;
}

const pattern = /^(?:(urn:[\w.:-]+):)?([a-z$][\w$-]*)(?:\.([a-z$][\w$-]*))?$/i;
const extensionPattern = /^urn:ietf:params:scim:schemas:extension:[\w.:-]+:User$/i;
const core = /^urn:ietf:params:scim:schemas:core:2\.0:(User|Group)$/i;

/** Reads a name. Throws what its place calls the fault. */
export function readPath(text: string, scimType: ScimType): ScimPath {
  if (extensionPattern.test(text)) return { schema: undefined, name: text, sub: undefined };
  const [, schema, name, sub] = pattern.exec(text) ?? [];
  if (name === undefined) throw badScim(scimType, 'There is a name of an attribute that cannot be read.');
  return { schema: schema !== undefined && core.test(schema) ? undefined : schema, name, sub };
}
