/** The tests' API server as a process of its own. Prints where it is; a line on its input has it print its counts. */
import { createInterface } from 'node:readline';
import { startFakeApi } from '../../test/kubernetes/fake-api.ts';

// As one does whose store flushes every write to a disk.
const api = await startFakeApi({ latencyMs: 12 });
// Of every request the tests keep what it was; here only how many there were.
console.log(JSON.stringify({ url: api.url, ca: api.authority.ca }));
for await (const _ of createInterface(process.stdin)) {
  const { connections, bindings, asked } = api;
  const writes = asked.filter(({ method }) => method !== 'GET').length;
  console.log(JSON.stringify({ requests: asked.length, writes, connections, bindings: bindings.all.size }));
  api.asked = [];
}
await api.stop();
