/**
 * Keeps the people on access lists up to date: one person at once when something about them changed, an
 * organization when it is asked for, and everyone at every interval, so that a lost notice costs one of those.
 */
import { deletePastEntries, updateListedUser, updateListedUsers } from '../store/access-list-users.ts';
import { acceptAccessLists } from '../store/access-lists.ts';
import type { Store } from '../store/index.ts';

export interface ListKeeper {
  /** Updates a person's entries, and has the lists that changed accepted. */
  updateUser(userId: string): Promise<void>;
  /** Does so for everyone in an organization; returns whether that changed its list. */
  updateOrganization(organizationId: string): Promise<boolean>;
  /** As `updateOrganization`, but joins an update that is under way: enough for a cluster that is new. */
  joinOrganization(organizationId: string): Promise<boolean>;
}

export function createListKeeper({ store }: { store: Store }): ListKeeper {
  const running = new Map<string, Promise<boolean>>();

  async function run(organizationId: string): Promise<boolean> {
    const changed = await updateListedUsers(store, organizationId);
    await acceptAccessLists(store, organizationId);
    while (await deletePastEntries(store, organizationId));
    return changed;
  }

  function joinOrganization(organizationId: string): Promise<boolean> {
    const under =
      running.get(organizationId) ?? run(organizationId).finally(() => running.delete(organizationId));
    running.set(organizationId, under);
    return under;
  }

  return {
    joinOrganization,
    async updateOrganization(organizationId) {
      // One that began before the change may have passed it already.
      await running.get(organizationId)?.catch(() => {});
      return joinOrganization(organizationId);
    },
    async updateUser(userId) {
      for (const organizationId of await updateListedUser(store, userId)) {
        await acceptAccessLists(store, organizationId);
      }
    },
  };
}
