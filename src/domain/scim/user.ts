/** A SCIM User (RFC 7643, section 4.1) as it is sent, and what of it is a person's here. */
import { foldEmail, isEmail } from '../people/email.ts';
import { cutText } from '../stored-text.ts';
import { type Attributes, isAttributes, nameIn, setValue, valueIn, valuesOf } from './attributes.ts';
import { badScim } from './error.ts';

export const userSchema = 'urn:ietf:params:scim:schemas:core:2.0:User';

export interface ScimPerson {
  userName: string;
  externalId: string | undefined;
  email: string;
  displayName: string;
  active: boolean;
  /** What else was sent, which is kept as it is. */
  attributes: Attributes;
}

/** Of the attributes of one person, as JSON. */
const mostBytes = 32_768;
const mostName = 200;
/** The service says these itself, or must not have them. */
const notKept = ['schemas', 'id', 'meta', 'groups', 'password', 'active', 'userName', 'externalId'];

/** Reads a User. Throws `invalidValue` for what cannot be a person here. */
export function readUser(body: unknown): ScimPerson {
  if (!isAttributes(body)) throw badScim('invalidSyntax', 'The body is no object.');
  const userName = valueIn(body, 'userName');
  if (typeof userName !== 'string' || userName.trim() === '' || userName.length > 254) {
    throw badScim('invalidValue', 'userName has to be a text of 1 to 254 characters.');
  }
  const attributes = structuredClone(body);
  for (const name of notKept) delete attributes[nameIn(attributes, name)];
  for (const one of valuesOf(valueIn(attributes, 'emails'))) {
    const primary = valueIn(one, 'primary');
    if (isAttributes(one) && primary !== undefined) setValue(one, 'primary', isTrue(primary, 'primary'));
  }
  if (Buffer.byteLength(JSON.stringify(attributes)) > mostBytes) {
    throw badScim('tooMany', `The attributes are larger than ${mostBytes} bytes.`);
  }
  const externalId = readExternalId(body);
  const email = emailOf(attributes, userName);
  const active = valueIn(body, 'active');
  return {
    userName,
    externalId,
    email,
    displayName: nameOf(attributes) ?? email,
    active: active === undefined || active === null || isTrue(active, 'active'),
    attributes,
  };
}

/** The ID that the identity provider has for a resource. */
export function readExternalId(body: Attributes): string | undefined {
  const externalId = valueIn(body, 'externalId') ?? undefined;
  if (externalId === undefined) return undefined;
  if (typeof externalId === 'string' && externalId.length <= 500) return externalId;
  throw badScim('invalidValue', 'externalId has to be a text of at most 500 characters.');
}

/** Entra sends booleans as "True" and "False". */
function isTrue(value: unknown, name: string): boolean {
  if (typeof value === 'boolean') return value;
  const text = typeof value === 'string' ? value.toLowerCase() : '';
  if (text === 'true' || text === 'false') return text === 'true';
  throw badScim('invalidValue', `${name} has to be true or false.`);
}

/** The primary address, else the one for work, else the only one; without any, `userName`. */
function emailOf(attributes: Attributes, userName: string): string {
  const emails = valuesOf(valueIn(attributes, 'emails'));
  const chosen =
    emails.find((one) => valueIn(one, 'primary') === true) ??
    emails.find((one) => valueIn(one, 'type') === 'work') ??
    (emails.length === 1 ? emails[0] : undefined);
  const email = chosen === undefined ? userName : valueIn(chosen, 'value');
  if (typeof email === 'string' && isEmail(email)) return foldEmail(email);
  throw badScim('invalidValue', 'Neither the primary one of emails nor userName is an email address.');
}

function nameOf(attributes: Attributes): string | undefined {
  const name = valueIn(attributes, 'name');
  const parts = [valueIn(name, 'givenName'), valueIn(name, 'familyName')];
  const joined = parts.filter((one) => typeof one === 'string' && one !== '').join(' ');
  const candidates = [valueIn(attributes, 'displayName'), valueIn(name, 'formatted'), joined];
  const found = candidates.find((one) => typeof one === 'string' && one.trim() !== '');
  return found === undefined ? undefined : cutText(String(found), mostName);
}
