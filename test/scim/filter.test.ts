/** Filters and patches, with the examples of RFC 7644. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ScimError } from '../../src/domain/scim/error.ts';
import { matches, readFilter } from '../../src/domain/scim/filter.ts';
import { patched } from '../../src/domain/scim/patch.ts';

const enterprise = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User';
const barbara = {
  schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'],
  id: '2819c223-7f76-453a-919d-413861904646',
  userName: 'bjensen',
  externalId: 'Bjensen',
  title: 'Tour Guide',
  userType: 'Employee',
  active: true,
  name: { familyName: "O'Malley", givenName: 'Barbara' },
  emails: [
    { type: 'work', value: 'bjensen@example.com', primary: true },
    { type: 'home', value: 'babs@example.org' },
  ],
  meta: { resourceType: 'User', lastModified: '2011-05-13T04:42:34Z' },
  [enterprise]: { employeeNumber: '701984' },
};

for (const [filter, wanted] of [
  // RFC 7644, section 3.4.2.2.
  ['userName eq "bjensen"', true],
  [`name.familyName co "O'Malley"`, true],
  ['userName sw "J"', false],
  ['urn:ietf:params:scim:schemas:core:2.0:User:userName sw "J"', false],
  ['title pr', true],
  ['meta.lastModified gt "2011-05-13T04:42:34Z"', false],
  ['meta.lastModified ge "2011-05-13T04:42:34Z"', true],
  ['meta.lastModified lt "2011-05-13T04:42:34Z"', false],
  ['meta.lastModified le "2011-05-13T04:42:34Z"', true],
  ['title pr and userType eq "Employee"', true],
  ['title pr or userType eq "Intern"', true],
  ['schemas eq "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"', false],
  ['userType eq "Employee" and (emails co "example.com" or emails.value co "example.org")', true],
  ['userType ne "Employee" and not (emails co "example.com" or emails.value co "example.org")', false],
  ['userType eq "Employee" and (emails.type eq "work")', true],
  ['userType eq "Employee" and emails[type eq "work" and value co "@example.com"]', true],
  ['emails[type eq "work" and value co "@example.com"] or ims[type eq "xmpp" and value co "@foo.com"]', true],
  // Names and operators in any case; texts as well, except for IDs.
  ['USERNAME EQ "BJENSEN"', true],
  ['externalId eq "bjensen"', false],
  ['active eq True', true],
  ['active eq "true"', true],
  ['nickName eq null', true],
  ['nickName pr', false],
  ['userName ew "sen" and not (active eq false)', true],
  [`${enterprise}:employeeNumber eq "701984"`, true],
  ['userName eq "a\\"b"', false],
] as const) {
  test(`the filter ${filter} ${wanted ? 'matches' : 'does not match'}`, () => {
    assert.equal(matches(readFilter(filter), barbara), wanted);
  });
}

for (const filter of [
  '',
  'userName',
  'userName eq',
  'userName is "a"',
  'userName eq bjensen',
  'userName eq "a" and',
  '(userName pr',
  'userName pr)',
  'emails[type eq "work"',
  'active gt true',
  'userName eq "a',
  `${'('.repeat(30)}title pr${')'.repeat(30)}`,
  `title eq "${'a'.repeat(3_000)}"`,
]) {
  test(`the filter ${filter.slice(0, 40)} is refused as invalidFilter`, () => {
    assert.throws(() => readFilter(filter), isScim('invalidFilter'));
  });
}

function isScim(scimType: string) {
  return (error: unknown) =>
    error instanceof ScimError && error.scimType === scimType && error.status === 400;
}

const patch = (resource: Record<string, unknown>, ...Operations: object[]) =>
  patched(resource, { schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'], Operations });

test('examples of RFC 7644, section 3.5.2, on members', () => {
  const group = { displayName: 'Tour Guides', members: [{ value: 'a' }] };
  const add = patch(group, { op: 'add', path: 'members', value: [{ display: 'Babs Jensen', value: 'b' }] });
  assert.deepEqual(add['members'], [{ value: 'a' }, { display: 'Babs Jensen', value: 'b' }]);
  assert.deepEqual(patch(add, { op: 'remove', path: 'members[value eq "b"]' })['members'], [{ value: 'a' }]);
  assert.equal(patch(add, { op: 'remove', path: 'members' })['members'], undefined);
  const swapped = patch(
    add,
    { op: 'remove', path: 'members' },
    { op: 'add', path: 'members', value: [{ value: 'c' }] },
  );
  assert.deepEqual(swapped['members'], [{ value: 'c' }]);
  assert.deepEqual(patch(add, { op: 'replace', path: 'members', value: [{ value: 'd' }] })['members'], [
    { value: 'd' },
  ]);
  assert.deepEqual(group.members, [{ value: 'a' }]);
});

test('examples of RFC 7644, section 3.5.2, on a person', () => {
  const added = patch(barbara, {
    op: 'add',
    value: { emails: [{ value: 'second@example.com', type: 'home' }], nickname: 'Babs' },
  });
  assert.equal((added['emails'] as unknown[]).length, 3);
  assert.equal(added['nickname'], 'Babs');
  const removed = patch(barbara, { op: 'remove', path: 'emails[type eq "work" and value ew "example.com"]' });
  assert.deepEqual(removed['emails'], [{ type: 'home', value: 'babs@example.org' }]);
  const sub = patch(barbara, {
    op: 'replace',
    path: 'emails[type eq "work"].value',
    value: 'new@example.com',
  });
  assert.deepEqual((sub['emails'] as unknown[])[0], {
    type: 'work',
    value: 'new@example.com',
    primary: true,
  });
  assert.throws(
    () => patch(barbara, { op: 'replace', path: 'emails[value co "nowhere"].value', value: 'x' }),
    isScim('noTarget'),
  );
});

test('a value that becomes primary is the only one', () => {
  const one = patch(barbara, { op: 'replace', path: 'emails[type eq "home"].primary', value: true });
  assert.deepEqual(
    (one['emails'] as { primary?: boolean }[]).map(({ primary }) => primary),
    [false, true],
  );
});

test('what Entra and Okta send', () => {
  const entra = patch(
    barbara,
    { op: 'Replace', path: 'active', value: 'False' },
    { op: 'Add', path: `${enterprise}:department`, value: 'Physics' },
    { op: 'Add', path: 'phoneNumbers[type eq "work"].value', value: '1' },
    {
      op: 'Replace',
      value: { 'name.familyName': 'Jensen', [`${enterprise}:costCenter`]: '7', displayName: 'Babs' },
    },
  );
  assert.equal(entra['active'], 'False');
  assert.deepEqual(entra[enterprise], { employeeNumber: '701984', department: 'Physics', costCenter: '7' });
  assert.deepEqual(entra['phoneNumbers'], [{ type: 'work', value: '1' }]);
  assert.deepEqual(entra['name'], { familyName: 'Jensen', givenName: 'Barbara' });
  assert.equal(entra['displayName'], 'Babs');
  const group = { displayName: 'A', members: [{ value: 'a' }, { value: 'b' }] };
  assert.deepEqual(patch(group, { op: 'Remove', path: 'members', value: [{ value: 'b' }] })['members'], [
    { value: 'a' },
  ]);
  const okta = patch(group, { op: 'replace', value: { id: 'x', displayName: 'B' } });
  assert.deepEqual([okta['id'], okta['displayName']], [undefined, 'B']);
});

test('a patch that cannot be is refused by its kind of fault', () => {
  const refused = (operation: object, kind: string) =>
    assert.throws(() => patch(barbara, operation), isScim(kind));
  refused({ op: 'move', path: 'title' }, 'invalidSyntax');
  refused({ op: 'remove' }, 'noTarget');
  refused({ op: 'replace', path: 'id', value: 'x' }, 'mutability');
  refused({ op: 'replace', path: 'emails[type eq "work".value', value: 'x' }, 'invalidPath');
  refused({ op: 'replace', path: 'a b', value: 'x' }, 'invalidPath');
  refused({ op: 'replace', path: 'title' }, 'invalidValue');
  assert.throws(() => patched(barbara, { Operations: [] }), isScim('invalidSyntax'));
});

test('an attribute named like the prototype is nothing but an attribute', () => {
  const made = patch({}, { op: 'add', value: JSON.parse('{"constructor":{"a":1}}') });
  assert.deepEqual(Object.keys(made), ['constructor']);
  assert.equal(({} as { a?: unknown }).a, undefined);
});
