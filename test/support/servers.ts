/** Several servers in this process, on one store: each writes as itself, and sends messages to the others. */
import { EventEmitter } from 'node:events';
import { newId } from '../../src/domain/id.ts';
import type { Store } from '../../src/store/engine/index.ts';
import { findRow } from '../../src/store/engine/rows.ts';

/** How messages go between the servers of a test. */
export type Wire = EventEmitter;

export const newWire = (): Wire => new EventEmitter().setMaxListeners(0);

/** The store as another server of its database would have it. */
export function asServer(store: Store, wire: Wire = newWire()): Store {
  const server = { id: newId('server', Date.now()), isAlone: false };
  return {
    ...store,
    server,
    write: (body, options) => store.write((tx) => body({ ...tx, server }), options),
    messages: {
      async send(topic, body) {
        wire.emit(topic, JSON.parse(JSON.stringify(body)), server.id);
      },
      on(topic, listener) {
        const hear = (body: unknown, from: string) => {
          if (from !== server.id) listener(body, from);
        };
        wire.on(topic, hear);
        return () => void wire.off(topic, hear);
      },
    },
  };
}

/** Makes it so long ago that a server was last seen. */
export async function letPass(store: Store, serverId: string, milliseconds: number): Promise<void> {
  await store.write(async ({ db }) => {
    const row = await findRow(db, 'servers', { id: serverId });
    if (!row) throw new Error(`there is no server ${serverId}`);
    const at = new Date(Date.parse(row.seen_at) - milliseconds).toISOString();
    await db.updateTable('servers').set({ seen_at: at }).where('id', '=', serverId).execute();
  });
}
