/**
 * What the client's code uses and Node 20 does not have. The build puts it in front of the portable client; a function that
 * is there already stays. `test/build/client.test.ts` runs the result on the Node 20 of the machine.
 */
const add = (target: object, name: string, value: unknown) => {
  if (!(name in target)) Object.defineProperty(target, name, { value, writable: true, configurable: true });
};

add(Promise, 'withResolvers', function withResolvers<T>() {
  let resolve: (value: T) => void = () => {};
  let reject: (reason: unknown) => void = () => {};
  const promise = new Promise<T>((...given) => {
    [resolve, reject] = given;
  });
  return { promise, resolve, reject };
});

add(URL, 'parse', function parse(text: string, base?: string) {
  return URL.canParse(text, base) ? new URL(text, base) : null;
});

add(Map, 'groupBy', function groupBy<K, V>(items: Iterable<V>, keyOf: (item: V, index: number) => K) {
  const groups = new Map<K, V[]>();
  let index = 0;
  for (const item of items) {
    const key = keyOf(item, index++);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
});

export {};
