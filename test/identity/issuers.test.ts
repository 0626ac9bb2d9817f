/** Tokens and endpoints as other issuers document them, which cannot be run here: who signs in, what counts as a sign-in, which groups are read. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { JWTPayload } from 'jose';
import { startDeviceFlow } from '../../src/cli/net/issuer.ts';
import { readGroups } from '../../src/domain/organizations/group-rules.ts';
import { physics, startTestApp } from '../support/app.ts';
import type { Discovery } from '../support/issuer.ts';

interface Recorded {
  source: string;
  discovery: Discovery;
  /** Times are seconds from now, such as `+300`. */
  accessToken: Record<string, unknown>;
  /** Or the status of its answer to a token of ours. */
  userinfo?: Record<string, unknown> | number;
  /** What has to be set, where the issuer does not vouch for addresses. */
  trustEmail?: string[];
  audiences?: string[];
  /** Null: the claim is not there. */
  groups: string[] | 'overage' | null;
  /** Whether the access token says when the person signed in. */
  signInCounts: boolean;
}

const folder = join(import.meta.dirname, 'issuers');
const lab = {
  ...physics,
  clusters: [],
  users: [...(physics.users ?? []), { email: 'zoe@physics.example', name: 'Zoe' }],
};
const hour = 3_600_000;

for (const name of readdirSync(folder))
  test(`a token as documented by ${name.replace('.json', '')}`, async () => {
    const recorded = JSON.parse(readFileSync(join(folder, name), 'utf8')) as Recorded;
    const { audiences = ['andromeda'], groups, signInCounts, discovery, trustEmail } = recorded;
    await using service = await startTestApp({
      ...{ lab, discovery },
      identity: { audiences, groups: { claim: 'groups' }, ...(trustEmail && { trustEmail }) },
      config: { access: { maxHoursWithoutSignIn: 12 } },
    });
    service.issuer.userinfo = recorded.userinfo ?? {};
    // The account was made, and is signed in to, some hours later.
    service.advance(2 * hour);
    const now = Math.floor(Date.now() / 1000) + 2 * 3_600;
    const timed = Object.entries(recorded.accessToken).map(([claim, value]) => [
      claim,
      typeof value === 'string' && /^[+-]\d+$/.test(value) ? now + Number(value) : value,
    ]);
    const made = { client_id: undefined, auth_time: undefined, email: undefined, email_verified: undefined };
    const claims: JWTPayload = { ...made, ...Object.fromEntries(timed) };
    const token = await service.issuer.token('zoe', claims);
    const { status, body } = await service.business('/me', { token });
    assert.equal(status, 200, JSON.stringify(body));
    assert.equal(body.user.primary_email, 'zoe@physics.example');
    const { requests, url } = service.issuer;
    assert.equal(requests.get(discovery.jwks_uri), 1);
    assert.equal(requests.has(discovery.userinfo_endpoint), typeof recorded.userinfo === 'object');
    const { signal } = new AbortController();
    const asked = {
      issuer: url,
      clientId: 'andromeda-cli',
      platformUrl: service.platformUrl,
      scope: 'openid',
      signal,
    };
    await assert.rejects(startDeviceFlow(asked), 'the test issuer has no device codes');
    assert.equal(requests.get(discovery['device_authorization_endpoint'] ?? ''), 1);

    const operator = { token: await service.issuer.token('root', { aud: audiences }) };
    const people = await service.business('/operator/people?email=zoe@physics.example', operator);
    assert.equal(people.body.people[0].last_sign_in_at !== undefined, signInCounts);
    const { body: said } = await service.business('/operator/problems', operator);
    assert.equal(/do not say when people signed in/.test(JSON.stringify(said)), !signInCounts);

    const read = readGroups(recorded.accessToken, 'groups');
    if (groups === null) assert.equal(read.kind, 'absent');
    else if (groups === 'overage') {
      assert.match(read.kind === 'fault' ? read.fault : '', /overage/);
      assert.match(JSON.stringify(said), /overage/);
    } else assert.deepEqual(read, { kind: 'groups', groups: groups.toSorted() });
  });
