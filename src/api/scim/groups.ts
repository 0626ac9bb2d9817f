/** SCIM Groups: kept with their members, who are Users. */
import { newUuid } from '../../domain/id.ts';
import type { Attributes } from '../../domain/scim/attributes.ts';
import { badScim } from '../../domain/scim/error.ts';
import { type Filter, wantedBy } from '../../domain/scim/filter.ts';
import { groupSchema, readGroup, type ScimGroup } from '../../domain/scim/group.ts';
import type { Reader, Store, Tx } from '../../store/engine/index.ts';
import {
  countScim,
  deleteScimGroup,
  findScimGroup,
  listScimGroups,
  listScimMembers,
  listUnknownMembers,
  type ScimGroupRecord,
  saveScimGroup,
} from '../../store/people/scim.ts';
import { recordScim } from './audit.ts';
import type { ScimOptions } from './options.ts';
import { type Change, type Kind, noResource, withMeta } from './resources.ts';

/** With up to 10,000 members each, so many fit into one answer. */
const mostGroups = 20;
const mostInAll = 10_000;

/** Groups as the paths of SCIM reach them. */
export class Groups implements Kind {
  readonly most = mostGroups;
  readonly #store: Store;
  readonly #base: string;

  constructor({ store }: ScimOptions, base: string) {
    this.#store = store;
    this.#base = base;
  }

  count() {
    return countScim(this.#store.read, 'scim_groups');
  }

  async list(page: Parameters<Kind['list']>[0], withMembers: boolean) {
    const records = await listScimGroups(this.#store.read, page);
    const ids = withMembers ? records.map(({ id }) => id) : [];
    const members = await listScimMembers(this.#store.read, ids);
    return records.map((record) => groupResource(record, members.get(record.id) ?? [], this.#base));
  }

  narrow(filter: Filter) {
    const id = wantedBy(filter, 'id');
    return id === undefined ? undefined : this.find(id).then((one) => (one ? [one] : []));
  }

  find(id: string) {
    return this.#find(this.#store.read, id);
  }

  create(body: unknown, change: Change) {
    return this.#write(change, async (tx) => {
      const group = readGroup(body);
      if ((await countScim(tx.db, 'scim_groups')) >= mostInAll)
        throw badScim('tooMany', `There are ${mostInAll} groups already.`);
      const id = newUuid();
      await save(tx, id, group);
      const about = { address: change.address, target: group.displayName };
      await recordScim(tx, 'scimCreateGroup', { ...about, details: `${group.members.length} members` });
      return this.#require(tx, id);
    });
  }

  change(id: string, next: (resource: Attributes) => unknown, change: Change) {
    return this.#write(change, async (tx) => {
      const before = await this.#require(tx, id);
      change.check(before);
      const group = readGroup(next(before));
      await save(tx, id, group);
      const after = await this.#require(tx, id);
      const details = changeOf(readGroup(before), group);
      if (details === '') return before;
      const about = { address: change.address, target: group.displayName };
      await recordScim(tx, 'scimChangeGroup', { ...about, details });
      return after;
    });
  }

  remove(id: string, change: Change) {
    return this.#write(change, async (tx) => {
      const before = await this.#require(tx, id);
      change.check(before);
      await deleteScimGroup(tx, id);
      const target = readGroup(before).displayName;
      await recordScim(tx, 'scimDeleteGroup', { address: change.address, target, details: '' });
    });
  }

  #write<T>({ now }: Change, body: (tx: Tx) => Promise<T>): Promise<T> {
    return this.#store.write((opened) => body({ ...opened, now }));
  }

  async #find(db: Reader, id: string): Promise<Attributes | undefined> {
    const record = await findScimGroup(db, id);
    return record && groupResource(record, (await listScimMembers(db, [id])).get(id) ?? [], this.#base);
  }

  async #require(tx: Tx, id: string): Promise<Attributes> {
    const group = await this.#find(tx.db, id);
    if (!group) throw noResource();
    return group;
  }
}

function groupResource(record: ScimGroupRecord, members: readonly string[], base: string): Attributes {
  const { id, displayName, externalId, createdAt: created, updatedAt: lastModified } = record;
  const resource = {
    schemas: [groupSchema],
    id,
    ...(externalId !== null && { externalId }),
    displayName,
    members: members.map((value) => ({ value, type: 'User', $ref: `${base}/Users/${value}` })),
  };
  return withMeta(resource, { type: 'Group', base, created, lastModified });
}

async function save(tx: Tx, id: string, { displayName, externalId, members }: ScimGroup): Promise<void> {
  const [unknown] = await listUnknownMembers(tx.db, members);
  if (unknown !== undefined) throw badScim('invalidValue', 'One of members is no User here.');
  await saveScimGroup(tx, { id, displayName, externalId: externalId ?? null, members });
}

/** What changed, in words; nothing where nothing did. */
function changeOf(before: ScimGroup, after: ScimGroup): string {
  const [had, has] = [new Set(before.members), new Set(after.members)];
  const said = [];
  if (before.displayName !== after.displayName) said.push(`${before.displayName} → ${after.displayName}`);
  if (before.externalId !== after.externalId) said.push('externalId');
  const [added, gone] = [has.difference(had).size, had.difference(has).size];
  if (added > 0) said.push(`${added} added`);
  if (gone > 0) said.push(`${gone} removed`);
  return said.join(', ');
}
