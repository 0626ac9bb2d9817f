/** Text that was typed and not saved: kept in the tab, for each person and cluster, so that a reload does not lose it. */

export interface Draft {
  /** The number of the configuration that it began from. */
  base: number;
  text: string;
}

/** Longer than what the API takes. */
const longest = 3 * 2 ** 20;

function nameOf(userId: string, clusterId: string): string {
  return `andromeda-slurm-${userId}-${clusterId}`;
}

export function readDraft(userId: string, clusterId: string): Draft | undefined {
  const { base, text } = JSON.parse(
    sessionStorage.getItem(nameOf(userId, clusterId)) ?? '{}',
  ) as Partial<Draft>;
  return base === undefined || text === undefined ? undefined : { base, text };
}

/** Returns whether it is kept: a tab has room for some megabytes. */
export function keepDraft(userId: string, clusterId: string, draft: Draft | undefined): boolean {
  const name = nameOf(userId, clusterId);
  if (!draft) {
    sessionStorage.removeItem(name);
    return true;
  }
  if (draft.text.length > longest) return false;
  try {
    sessionStorage.setItem(name, JSON.stringify(draft));
    return true;
  } catch {
    return false;
  }
}
