/** A part of the composition root: whether login nodes would let the gateway in with another key. */
import { askKey } from '../../gateway/ssh/login/ask-key.ts';
import { listLoginNodes } from '../../store/clusters/login-nodes.ts';
import type { Reader } from '../../store/engine/index.ts';

/** Where everyone has a login node of their own, there are thousands. */
const atOnce = 16;

/** Sentences about those that would not, or that cannot be asked. */
export async function refusalsOfLoginNodes(db: Reader, publicKey: string): Promise<string[]> {
  const nodes = await listLoginNodes(db);
  const refusals: string[] = [];
  const rest = nodes.values();
  const worker = async () => {
    for (const { cluster, node, username } of rest) {
      const why = !node.up
        ? 'it is down'
        : username === undefined
          ? 'nobody has an account there who could be asked about'
          : await askKey({ loginNode: node, username, publicKey });
      if (why !== undefined) refusals.push(`${cluster}, ${node.name} (${node.host}:${node.port}): ${why}.`);
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, nodes.length) }, worker));
  return refusals.sort();
}
