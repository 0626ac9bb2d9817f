/** `andromeda admin gateway`. */
import { oneLine } from '../output.ts';
import { type Noun, reads } from './verb.ts';

export interface Gateway {
  public_key: string;
}

export const gateway: Noun = {
  name: 'gateway',
  summary: 'the SSH gateway, as login nodes know it',
  verbs: [
    reads({
      usage: 'key',
      summary: "print the gateway's public key, for login nodes to trust: one line, OpenSSH format",
      example: 'gateway key > gateway.pub',
      formats: ['text', 'json'],
      async run({ api }) {
        const json = await api.get<Gateway>('/operator/gateway');
        return { json, text: oneLine(json.public_key) };
      },
    }),
  ],
};
