/** `andromeda admin scim`: the tokens that an identity provider pushes people with. */
import { printer } from '../answer.ts';
import type { Business } from '../net/operations.ts';
import { printMessage } from '../output.ts';
import { type Noun, optional, writes } from '../verb.ts';

const tokens = printer<Business['ScimToken']>(
  { TOKEN: (row) => row.token ?? '', VALID: (row) => row.valid },
  'There is no token.',
);

export const scim: Noun = {
  name: 'scim',
  summary: 'tokens of identity providers that push people over SCIM',
  verbs: [
    writes<{ replace?: true; none?: true }>({
      usage: 'token',
      summary: 'make a token, which is shown once; two are valid at a time',
      example: "scim token --reason 'a new identity provider'",
      flags: [
        optional('--replace', 'revoke the others'),
        optional('--none', 'revoke all of them, and make none').conflicts('replace'),
      ],
      async run({ api, options: { replace, none } }) {
        if (none) return tokens.one(await api.post('/operator/scim/tokens/revoke', {}));
        const made = await api.post('/operator/scim/tokens', { body: { replace } });
        printMessage('Give the token to the identity provider now: it is not shown again.');
        return tokens.one(made);
      },
    }),
  ],
};
