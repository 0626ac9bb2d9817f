/** `andromeda admin gateway`. */

import { visibleLine } from '../../domain/visible-text.ts';
import { usage } from '../exit.ts';
import { type Noun, optional, reads, required } from '../verb.ts';
import { sshdLines } from './sshd-lines.ts';

/** Every key that login nodes are to trust. A server from before keys rotated names one. */
function publicKeys(answer: { public_key: string; other_public_keys?: readonly string[] }): string[] {
  return [answer.public_key, ...(answer.other_public_keys ?? [])];
}

export const gateway: Noun = {
  name: 'gateway',
  summary: 'the SSH gateway, as login nodes know it',
  verbs: [
    reads({
      usage: 'key',
      summary:
        "print the gateway's public key, for login nodes to trust: one line, OpenSSH format; while one key takes the place of another, a line for each",
      example: 'gateway key > gateway.pub',
      formats: ['text', 'json', 'yaml'],
      async run({ api }) {
        const json = await api.get('/operator/gateway');
        return { json, text: publicKeys(json).map(visibleLine).join('\n') };
      },
    }),
    reads<{ from: string; manage?: string }>({
      usage: 'sshd',
      summary: 'print what the sshd of a login node needs, as lines for its configuration',
      example: 'gateway sshd --from 10.0.0.1 > 10-andromeda.conf',
      formats: ['text', 'json', 'yaml'],
      flags: [
        required(
          '--from <addresses>',
          'where the gateway connects from: IP addresses or networks, with commas',
        ),
        optional('--manage <user>', 'the account that manages the machine from there, as in the lab file'),
      ],
      async run({ api, options: { from, manage } }) {
        if (!/^[0-9a-fA-F.:]+(\/\d{1,3})?(,[0-9a-fA-F.:]+(\/\d{1,3})?)*$/.test(from))
          throw usage(`'${from}' is not a list of IP addresses or networks.`);
        if (manage !== undefined && !/^[A-Za-z_][A-Za-z0-9._-]{0,31}$/.test(manage))
          throw usage(`'${manage}' is not the name of an account.`);
        const keys = publicKeys(await api.get('/operator/gateway')).map(visibleLine);
        const text = sshdLines({ publicKeys: keys, from, ...(manage && { manage }) });
        return { json: { sshd_config: text }, text };
      },
    }),
  ],
};
