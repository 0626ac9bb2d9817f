/**
 * Keeps whom access lists name as the present truth says: one person at once when something about them changed, an
 * organization when it is asked for, and everyone at every interval, so that a lost notice costs one of those.
 */
import { deletePastEntries, updateListedUser, updateListedUsers } from '../store/access-list-users.ts';
import { acceptAccessLists } from '../store/access-lists.ts';
import type { Store } from '../store/index.ts';

export interface ListKeeper {
  /** Brings a person's entries to the present truth, and has the lists accepted that changed. */
  updateUser(userId: string): Promise<void>;
  /** Does so for everyone in an organization; returns whether that changed its list. */
  updateOrganization(orgId: string): Promise<boolean>;
  /** As `updateOrganization`, but one under way is good enough: for what is new and was never up to date. */
  joinOrganization(orgId: string): Promise<boolean>;
}

export function createListKeeper({ store, now }: { store: Store; now(): number }): ListKeeper {
  const running = new Map<string, Promise<boolean>>();

  async function run(orgId: string): Promise<boolean> {
    const changed = await updateListedUsers(store, orgId, now());
    await acceptAccessLists(store, orgId, now());
    while (await deletePastEntries(store, orgId));
    return changed;
  }

  function joinOrganization(orgId: string): Promise<boolean> {
    const under = running.get(orgId) ?? run(orgId).finally(() => running.delete(orgId));
    running.set(orgId, under);
    return under;
  }

  return {
    joinOrganization,
    async updateOrganization(orgId) {
      // One that began before the change may have passed it already.
      await running.get(orgId)?.catch(() => {});
      return joinOrganization(orgId);
    },
    async updateUser(userId) {
      for (const orgId of await updateListedUser(store, userId, now())) {
        await acceptAccessLists(store, orgId, now());
      }
    },
  };
}
