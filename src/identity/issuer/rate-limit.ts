/** At most so many a window, by key and in all. */
export function createRateLimit(
  { perKey, inAll, windowMs }: { perKey: number; inAll: number; windowMs: number },
  now: () => number,
): (key: string) => boolean {
  let startedAt = now();
  let all = 0;
  const counts = new Map<string, number>();
  return (key) => {
    if (now() - startedAt >= windowMs) {
      startedAt = now();
      all = 0;
      counts.clear();
    }
    const count = counts.get(key) ?? 0;
    if (count >= perKey || all >= inAll) return false;
    // At most `inAll` keys: nothing is counted beyond that.
    counts.set(key, count + 1);
    all++;
    return true;
  };
}
