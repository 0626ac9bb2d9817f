/** PATCH of SCIM (RFC 7644, section 3.5.2), and what Entra and Okta send that is not quite it. */
import { type Attributes, isAttributes, nameIn, setValue, valueIn, valuesOf } from './attributes.ts';
import { badScim } from './error.ts';
import { type Filter, matches, readFilter } from './filter.ts';
import { readPath } from './path.ts';

const mostOperations = 100;
const patchSchema = 'urn:ietf:params:scim:api:messages:2.0:PatchOp';
const severalValues =
  /^(emails|phonenumbers|ims|photos|addresses|groups|entitlements|roles|x509certificates|members)$/i;
const readOnly = /^(id|meta|groups|schemas)$/i;

interface Target {
  schema: string | undefined;
  name: string;
  filter: Filter | undefined;
  sub: string | undefined;
}

/**
 * The resource as it is after all operations of a request's body; the one given stays as it is. Throws what is wrong with one of them:
 * then none was done.
 */
export function patched(resource: Attributes, body: unknown): Attributes {
  const operations = valueIn(body, 'Operations');
  if (!valuesOf(valueIn(body, 'schemas')).includes(patchSchema) || !Array.isArray(operations)) {
    throw badScim('invalidSyntax', `The body is no ${patchSchema} with Operations.`);
  }
  if (operations.length > mostOperations) {
    throw badScim('tooMany', `There are more than ${mostOperations} operations.`);
  }
  const changed = structuredClone(resource);
  for (const operation of operations) apply(changed, operation);
  return changed;
}

function apply(resource: Attributes, operation: unknown): void {
  const [op, path, value] = ['op', 'path', 'value'].map((name) => valueIn(operation, name));
  // Entra writes Add, Replace and Remove.
  const kind = typeof op === 'string' ? op.toLowerCase() : '';
  if (kind !== 'add' && kind !== 'replace' && kind !== 'remove') {
    throw badScim('invalidSyntax', 'An operation is none of add, replace and remove.');
  }
  if (kind !== 'remove' && value === undefined) throw badScim('invalidValue', 'An operation has no value.');
  if (typeof path === 'string' && path !== '') {
    const target = readTarget(path);
    if (readOnly.test(target.name) && target.schema === undefined) {
      throw badScim('mutability', `${target.name} cannot be changed.`);
    }
    change(resource, target, kind, value);
    return;
  }
  if (kind === 'remove') throw badScim('noTarget', 'An operation removes, and does not say what.');
  if (!isAttributes(value)) throw badScim('invalidValue', 'Without a path, the value has to be an object.');
  // The keys are paths as well: Entra sends `name.familyName` and URNs of extensions, Okta the ID with what it changes.
  for (const [name, one] of Object.entries(value)) {
    const target = readTarget(name);
    if (!readOnly.test(target.name) || target.schema !== undefined) change(resource, target, kind, one);
  }
}

function readTarget(path: string): Target {
  const open = path.indexOf('[');
  if (open === -1) return { ...readPath(path, 'invalidPath'), filter: undefined };
  const close = path.lastIndexOf(']');
  const rest = path.slice(close + 1);
  if (close < open || (rest !== '' && !rest.startsWith('.'))) {
    throw badScim('invalidPath', 'A path has a bracket that does not end.');
  }
  const { schema, name } = readPath(path.slice(0, open), 'invalidPath');
  const sub = rest === '' ? undefined : readPath(rest.slice(1), 'invalidPath').name;
  return { schema, name, filter: readFilter(path.slice(open + 1, close)), sub };
}

type Kind = 'add' | 'replace' | 'remove';

function change(resource: Attributes, target: Target, kind: Kind, value: unknown): void {
  const { schema, name, filter, sub } = target;
  if (schema !== undefined) {
    const holder = objectAt(resource, schema, kind);
    if (holder) change(holder, { ...target, schema: undefined }, kind, value);
  } else if (filter) changeSome(resource, { name, filter, sub }, kind, value);
  else if (sub !== undefined) changeSub(resource, name, sub, kind, value);
  else set(resource, name, kind, value);
}

/** The object that an attribute is; made where something is put into it. */
function objectAt(resource: Attributes, name: string, kind: Kind): Attributes | undefined {
  const known = valueIn(resource, name);
  if (isAttributes(known)) return known;
  if (kind === 'remove') return undefined;
  const made: Attributes = {};
  setValue(resource, name, made);
  return made;
}

function changeSub(resource: Attributes, name: string, sub: string, kind: Kind, value: unknown): void {
  const known = valueIn(resource, name);
  const holders = Array.isArray(known) ? known.filter(isAttributes) : [objectAt(resource, name, kind)];
  for (const holder of holders) if (holder) set(holder, sub, kind, value);
}

function changeSome(
  resource: Attributes,
  { name, filter, sub }: { name: string; filter: Filter; sub: string | undefined },
  kind: Kind,
  value: unknown,
): void {
  const all = valuesOf(valueIn(resource, name));
  const found = all.filter((one) => matches(filter, one));
  if (kind === 'remove' && sub === undefined) {
    const gone = new Set(found);
    store(
      resource,
      name,
      all.filter((one) => !gone.has(one)),
    );
    return;
  }
  if (found.length === 0) {
    if (kind === 'remove') return;
    const made = madeFor(filter);
    // Entra replaces the work address of a person who has none yet, and expects that it is there then.
    if (!made) throw badScim('noTarget', `No value of ${name} is the one that is to be changed.`);
    all.push(made);
    found.push(made);
  }
  for (const one of found.filter(isAttributes)) {
    if (sub !== undefined) set(one, sub, kind, value);
    else if (isAttributes(value)) for (const [key, each] of Object.entries(value)) setValue(one, key, each);
  }
  oneIsPrimary(all, found);
  store(resource, name, all);
}

/** A value that the filter finds, where it says what it is to be. */
function madeFor(filter: Filter): Attributes | undefined {
  const parts = filter.kind === 'and' ? filter.parts : [filter];
  const made: Attributes = {};
  for (const part of parts) {
    if (part.kind !== 'compare' || part.operator !== 'eq' || part.path.sub !== undefined) return undefined;
    setValue(made, part.path.name, part.value);
  }
  return made;
}

function set(resource: Attributes, name: string, kind: Kind, value: unknown): void {
  const known = valueIn(resource, name);
  if (kind === 'remove') {
    // Entra names those to remove in the value.
    const gone = new Set(valuesOf(value).map((one) => valueIn(one, 'value') ?? one));
    const isLeft = (one: unknown) => gone.size > 0 && !gone.has(valueIn(one, 'value') ?? one);
    store(resource, name, Array.isArray(known) ? known.filter(isLeft) : []);
  } else if (kind === 'add' && (Array.isArray(known) || severalValues.test(name))) {
    const added = valuesOf(value);
    const before = valuesOf(known);
    const keys = new Set(before.map(keyOf));
    const all = [...before, ...added.filter((one) => !keys.has(keyOf(one)))];
    oneIsPrimary(all, added);
    store(resource, name, all);
  } else if (severalValues.test(name)) store(resource, name, valuesOf(value));
  else if (isAttributes(known) && isAttributes(value)) {
    for (const [key, one] of Object.entries(value)) setValue(known, key, one);
  } else if (value === null) delete resource[nameIn(resource, name)];
  else setValue(resource, name, value);
}

function store(resource: Attributes, name: string, values: unknown[]): void {
  if (values.length === 0) delete resource[nameIn(resource, name)];
  else setValue(resource, name, values);
}

/** Of several values, the one that became primary is the only one. */
function oneIsPrimary(all: readonly unknown[], changed: readonly unknown[]): void {
  const primary = changed.find((one) => valueIn(one, 'primary') === true);
  if (!primary) return;
  for (const one of all) {
    if (one !== primary && isAttributes(one) && valueIn(one, 'primary') === true)
      setValue(one, 'primary', false);
  }
}

/** What makes a value another one than the rest: an address may be there once with each type. */
function keyOf(one: unknown): string {
  return isAttributes(one)
    ? JSON.stringify([valueIn(one, 'value') ?? one, valueIn(one, 'type') ?? ''])
    : JSON.stringify([one, '']);
}
