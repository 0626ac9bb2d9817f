/** One sentence on what has just been done, where the page itself does not say it. It stays until it is closed, or the next write. */

let text: string | undefined;
const watchers = new Set<() => void>();

export function notice(): string | undefined {
  return text;
}

export function giveNotice(sentence: string | undefined): void {
  text = sentence;
  for (const watcher of watchers) watcher();
}

export function watchNotice(watcher: () => void): () => void {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}
