/**
 * Browsers with the console open: `node tab-browsers.ts <JSON of TabsOrder>` holds a stream for each tab, says `open`, and
 * reads again what a tab shows whenever its stream says so, until it is ended.
 */
export interface TabsOrder {
  url: string;
  /** The cookie of each tab, and what its page reads. */
  tabs: readonly { cookie: string; reads: readonly { topic: string; path: string }[] }[];
}

const order = JSON.parse(process.argv[2] ?? '') as TabsOrder;
const headersOf = (cookie: string) => ({
  cookie,
  'x-andromeda-console': 'idle',
  'sec-fetch-site': 'same-origin',
});

await Promise.all(order.tabs.map((tab) => open(tab)));
process.stdout.write('open\n');

async function open({ cookie, reads }: TabsOrder['tabs'][number]): Promise<void> {
  const headers = headersOf(cookie);
  const response = await fetch(`${order.url}/events`, { headers });
  if (!response.ok || !response.body) throw new Error(`a stream is answered with ${response.status}`);
  void (async () => {
    for await (const part of response.body ?? []) {
      const text = Buffer.from(part).toString();
      for (const { topic, path } of reads)
        if (text.includes(`"${topic}`)) await (await fetch(`${order.url}${path}`, { headers })).arrayBuffer();
    }
  })();
}
