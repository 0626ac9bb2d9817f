/** One person's requests to one API, for what a bench prepares and for the requests that it counts. */
import { randomUUID } from 'node:crypto';
import { newPublicKey } from '../../test/support/ssh-keys.ts';

export interface Client {
  port: number;
  /** Rejects when the answer is no success. */
  fetch(path: string, init?: RequestInit): Promise<Response>;
  /** A GET as it goes over the wire. */
  request(path: string): string;
}

export function createClient(port: number, authorization: string): Client {
  return {
    port,
    async fetch(path, init) {
      // As it is, so that a bare server can send the same bytes.
      const headers = { authorization, 'accept-encoding': 'identity', ...init?.headers };
      const response = await fetch(`http://127.0.0.1:${port}${path}`, { ...init, headers });
      if (response.ok) return response;
      throw new Error(`${init?.method ?? 'GET'} ${path} answers ${response.status} ${await response.text()}`);
    },
    request: (path) =>
      `GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${authorization}\r\nAccept: */*\r\n\r\n`,
  };
}

/** The ID of the organization that a person belongs to under a username. */
export async function organizationOf(business: Client, username: string): Promise<string> {
  const { memberships } = (await (await business.fetch('/me')).json()) as {
    memberships: { organization_username: { org_id: string; username?: string } }[];
  };
  const membership = memberships.find((one) => one.organization_username.username === username);
  if (!membership) throw new Error(`nobody here is called ${username}`);
  return membership.organization_username.org_id;
}

/** Registers an SSH key for the person, a new one if none is given. */
export async function registerKey(business: Client, publicKey = newPublicKey()): Promise<void> {
  const response = await business.fetch('/me/ssh-keys', {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'idempotency-key': randomUUID(),
      'audit-reason': 'bench',
    },
    body: JSON.stringify({ public_key: publicKey }),
  });
  await response.arrayBuffer();
}
