/** `andromeda admin gateway`. */

import { visibleLine } from '../../domain/visible-text.ts';
import { usage } from '../exit.ts';
import { type Noun, optional, reads, required } from '../verb.ts';
import { sshdLines } from './sshd-lines.ts';

export const gateway: Noun = {
  name: 'gateway',
  summary: 'the SSH gateway, as login nodes know it',
  verbs: [
    reads({
      usage: 'key',
      summary: "print the gateway's public key, for login nodes to trust: one line, OpenSSH format",
      example: 'gateway key > gateway.pub',
      formats: ['text', 'json', 'yaml'],
      async run({ api }) {
        const json = await api.get('/operator/gateway');
        return { json, text: visibleLine(json.public_key) };
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
        const { public_key } = await api.get('/operator/gateway');
        const text = sshdLines({ publicKey: visibleLine(public_key), from, ...(manage && { manage }) });
        return { json: { sshd_config: text }, text };
      },
    }),
  ],
};
