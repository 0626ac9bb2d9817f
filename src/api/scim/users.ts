/** SCIM Users: the people of the installation whom the identity provider knows. */
import type { Attributes } from '../../domain/scim/attributes.ts';
import { ScimError } from '../../domain/scim/error.ts';
import { wantedBy } from '../../domain/scim/filter.ts';
import { mostResults } from '../../domain/scim/service.ts';
import { readUser, type ScimPerson, userSchema } from '../../domain/scim/user.ts';
import type { Logger } from '../../lib/log.ts';
import type { Tx } from '../../store/engine/index.ts';
import {
  findOrCreatePerson,
  findPerson,
  findPersonByEmail,
  updateDisplayName,
  updateEmail,
  updateLifecycle,
} from '../../store/people/people.ts';
import {
  countScim,
  deleteScimUser,
  findScimUser,
  findScimUserByName,
  listScimUsers,
  type ScimUserRecord,
  saveScimUser,
} from '../../store/people/scim.ts';
import { recordScim } from './audit.ts';
import type { ScimOptions } from './options.ts';
import { type Change, type Kind, noResource, withMeta } from './resources.ts';
import { takeOut } from './take-out.ts';

export function createUsers({ store, log }: ScimOptions, base: string): Kind {
  const changes = new UserChanges(log, base);
  const resourceOf = (record: ScimUserRecord) => userResource(record, base);

  /** Undefined where so many share it that this is not all of them. */
  const byExternalId = async (externalId: string) => {
    const found = await listScimUsers(store.read, { externalId, limit: mostResults });
    return found.length < mostResults ? found.map(resourceOf) : undefined;
  };

  const write = <T>({ now }: Change, body: (tx: Tx) => Promise<T>) =>
    store.write((opened) => body({ ...opened, now }));

  return {
    most: mostResults,
    count: () => countScim(store.read, 'scim_users'),
    list: async (page) => (await listScimUsers(store.read, page)).map(resourceOf),
    narrow(filter) {
      const userName = wantedBy(filter, 'userName');
      if (userName !== undefined) {
        return findScimUserByName(store.read, userName).then((one) => (one ? [resourceOf(one)] : []));
      }
      const externalId = wantedBy(filter, 'externalId');
      if (externalId !== undefined) return byExternalId(externalId);
      const id = wantedBy(filter, 'id');
      if (id !== undefined) return findScimUser(store.read, id).then((one) => (one ? [resourceOf(one)] : []));
      return undefined;
    },
    async find(id) {
      const record = await findScimUser(store.read, id);
      return record && resourceOf(record);
    },
    create: (body, change) => write(change, (tx) => changes.create(tx, body, change)),
    change: (id, next, change) => write(change, (tx) => changes.alter(tx, id, next, change)),
    remove: (id, change) => write(change, (tx) => changes.remove(tx, id, change)),
  };
}

/** What changes a person, each in a write. */
class UserChanges {
  readonly #log: Logger;
  readonly #base: string;

  constructor(log: Logger, base: string) {
    this.#log = log;
    this.#base = base;
  }

  async #require(tx: Tx, id: string): Promise<Attributes> {
    const record = await findScimUser(tx.db, id);
    if (!record) throw noResource();
    return userResource(record, this.#base);
  }

  /** Ends the person's access. What could not be taken is in the log and the audit trail. */
  async #end(tx: Tx, userId: string): Promise<string> {
    const kept = await takeOut(tx, userId);
    if (kept.length > 0) this.#log.warn('scim.kept', { userId, kept: kept.join('; ') });
    return ['may not sign in', ...kept.map((one) => `left: ${one}`)].join('; ');
  }

  async create(tx: Tx, body: unknown, change: Change): Promise<Attributes> {
    const user = readUser(body);
    const { email, displayName } = user;
    await requireFree(tx, user, undefined);
    const known = await findPersonByEmail(tx.db, email);
    if (known && (await findScimUser(tx.db, known.id))) throw taken(email);
    const userId = known?.id ?? (await findOrCreatePerson(tx, { email, displayName })).userId;
    if (known && displayName !== email) await updateDisplayName(tx, { userId, displayName });
    await save(tx, userId, user);
    let details = known ? 'had an account' : 'a new account';
    if (!user.active) details += `; ${await this.#end(tx, userId)}`;
    else if (await updateLifecycle(tx, { userId, state: 'active' })) details += '; may sign in again';
    const entry = { address: change.address, target: email, subjectUserId: userId, details };
    await recordScim(tx, 'scimCreateUser', entry);
    return this.#require(tx, userId);
  }

  async alter(
    tx: Tx,
    id: string,
    next: (resource: Attributes) => unknown,
    change: Change,
  ): Promise<Attributes> {
    const before = await this.#require(tx, id);
    change.check(before);
    const user = readUser(next(before));
    await requireFree(tx, user, id);
    const person = await findPerson(tx.db, id);
    if (!person) throw noResource();
    const isEnded = !user.active && before['active'] === true;
    const said = [];
    if (await updateEmail(tx, { userId: id, email: user.email }))
      said.push(`${person.email} → ${user.email}`);
    if (await updateDisplayName(tx, { userId: id, displayName: user.displayName })) said.push('name');
    if (isEnded) said.push(await this.#end(tx, id));
    else if (user.active && (await updateLifecycle(tx, { userId: id, state: 'active' }))) {
      said.push('may sign in again');
    }
    if (isSame(before, user) && said.length === 0) return before;
    await save(tx, id, user);
    const details = said.join('; ') || 'attributes';
    const entry = { address: change.address, target: user.email, subjectUserId: id, details };
    await recordScim(tx, isEnded ? 'scimDeactivateUser' : 'scimChangeUser', entry);
    return this.#require(tx, id);
  }

  async remove(tx: Tx, id: string, change: Change): Promise<void> {
    change.check(await this.#require(tx, id));
    const person = await findPerson(tx.db, id);
    const details = await this.#end(tx, id);
    await deleteScimUser(tx, id);
    const entry = { address: change.address, target: person?.email ?? id, subjectUserId: id, details };
    await recordScim(tx, 'scimDeleteUser', entry);
  }
}

function userResource(
  { userId, externalId, attributes, isActive, ...at }: ScimUserRecord,
  base: string,
): Attributes {
  const kept = JSON.parse(attributes) as Attributes;
  const extensions = Object.keys(kept).filter((name) => name.startsWith('urn:'));
  const resource = {
    schemas: [userSchema, ...extensions],
    id: userId,
    ...(externalId !== null && { externalId }),
    ...kept,
    active: isActive,
  };
  return withMeta(resource, { type: 'User', base, created: at.createdAt, lastModified: at.updatedAt });
}

/** The name of one person is no other's. */
async function requireFree(tx: Tx, { userName }: ScimPerson, id: string | undefined): Promise<void> {
  const holder = await findScimUserByName(tx.db, userName);
  if (holder && holder.userId !== id) throw taken(userName);
}

function taken(name: string): ScimError {
  return new ScimError(409, `There is a User with ${name} already.`, 'uniqueness');
}

async function save(tx: Tx, userId: string, user: ScimPerson): Promise<void> {
  const { userName, externalId = null } = user;
  await saveScimUser(tx, { userId, userName, externalId, attributes: keptText(user) });
}

function keptText({ userName, attributes }: ScimPerson): string {
  return JSON.stringify({ userName, ...attributes });
}

/** Whether what is kept stays as it is. */
function isSame(before: Attributes, user: ScimPerson): boolean {
  const { schemas: _schemas, id: _id, meta: _meta, active: _active, externalId, ...kept } = before;
  return JSON.stringify(kept) === keptText(user) && externalId === user.externalId;
}
