/** What this service says of itself over SCIM (RFC 7643, sections 5 to 7). */
import { groupSchema } from './group.ts';
import { userSchema } from './user.ts';

/** The largest page of a list. */
export const mostResults = 200;

export const providerConfig = {
  schemas: ['urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig'],
  patch: { supported: true },
  bulk: { supported: false, maxOperations: 0, maxPayloadSize: 0 },
  filter: { supported: true, maxResults: mostResults },
  changePassword: { supported: false },
  sort: { supported: false },
  etag: { supported: true },
  authenticationSchemes: [
    { type: 'oauthbearertoken', name: 'Bearer token', description: 'RFC 6750', primary: true },
  ],
  meta: { resourceType: 'ServiceProviderConfig' },
};

const resourceType = (name: 'User' | 'Group', schema: string) => ({
  schemas: ['urn:ietf:params:scim:schemas:core:2.0:ResourceType'],
  id: name,
  name,
  endpoint: `/${name}s`,
  schema,
  meta: { resourceType: 'ResourceType' },
});

export const resourceTypes = [resourceType('User', userSchema), resourceType('Group', groupSchema)];

interface Attribute {
  name: string;
  type?: 'string' | 'boolean' | 'complex' | 'reference';
  required?: true;
  caseExact?: true;
  multiValued?: true;
  uniqueness?: 'server';
  subAttributes?: Attribute[];
  referenceTypes?: string[];
}

function described(attribute: Attribute): object {
  const { subAttributes } = attribute;
  const { name, type = 'string' } = attribute;
  const usual = { multiValued: false, required: false, caseExact: false, uniqueness: 'none' };
  return {
    ...usual,
    mutability: 'readWrite',
    returned: 'default',
    description: name,
    type,
    ...attribute,
    ...(subAttributes && { subAttributes: subAttributes.map(described) }),
  };
}

const named = (...names: string[]): Attribute[] => names.map((name) => ({ name }));
const primary: Attribute = { name: 'primary', type: 'boolean' };

const schema = (id: string, name: string, attributes: Attribute[]) => ({
  schemas: ['urn:ietf:params:scim:schemas:core:2.0:Schema'],
  id,
  name,
  description: name,
  attributes: attributes.map(described),
  meta: { resourceType: 'Schema' },
});

export const schemas = [
  schema(userSchema, 'User', [
    { name: 'userName', required: true, uniqueness: 'server' },
    {
      name: 'name',
      type: 'complex',
      subAttributes: named('formatted', 'familyName', 'givenName', 'middleName'),
    },
    ...named('displayName', 'title', 'preferredLanguage', 'locale', 'timezone'),
    { name: 'externalId', caseExact: true },
    { name: 'active', type: 'boolean' },
    {
      name: 'emails',
      type: 'complex',
      multiValued: true,
      subAttributes: [...named('value', 'display', 'type'), primary],
    },
  ]),
  schema(groupSchema, 'Group', [
    { name: 'displayName', required: true },
    { name: 'externalId', caseExact: true },
    {
      name: 'members',
      type: 'complex',
      multiValued: true,
      subAttributes: [{ name: 'value' }, { name: '$ref', type: 'reference', referenceTypes: ['User'] }],
    },
  ]),
];
