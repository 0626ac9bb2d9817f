/** `andromeda shell`. */
import type { Answer } from '../answer.ts';
import { type Noun, writes } from '../verb.ts';

export const shell: Noun = {
  name: 'shell',
  summary: 'your login shell, on every cluster',
  verbs: [
    writes({
      usage: 'set <path>',
      summary: 'choose your login shell; nothing restarts, and open sessions keep theirs',
      example: 'shell set /bin/zsh',
      formats: ['text', 'json', 'yaml'],
      async run({ api }, path): Promise<Answer> {
        const json = await api.put('/me/login-preferences', { body: { shell: path } });
        const text = `Your login shell is ${json.shell}.`;
        return { json, text, message: 'It is in place everywhere once `andromeda wait key` has ended.' };
      },
    }),
  ],
};
