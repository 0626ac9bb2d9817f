/** `andromeda admin gateway`. */
import { usage } from '../exit.ts';
import { oneLine } from '../output.ts';
import { type Noun, reads, required } from '../verb.ts';
import { sshdLines } from './sshd-lines.ts';

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
      formats: ['text', 'json', 'yaml'],
      async run({ api }) {
        const json = await api.get<Gateway>('/operator/gateway');
        return { json, text: oneLine(json.public_key) };
      },
    }),
    reads<{ from: string }>({
      usage: 'sshd',
      summary: 'print what the sshd of a login node needs, as lines for its configuration',
      example: 'gateway sshd --from 10.0.0.1 > 10-andromeda.conf',
      formats: ['text', 'json', 'yaml'],
      flags: [
        required(
          '--from <addresses>',
          'where the gateway connects from: IP addresses or networks, with commas',
        ),
      ],
      async run({ api, options: { from } }) {
        if (!/^[0-9a-fA-F.:]+(\/\d{1,3})?(,[0-9a-fA-F.:]+(\/\d{1,3})?)*$/.test(from))
          throw usage(`'${from}' is not a list of IP addresses or networks.`);
        const { public_key } = await api.get<Gateway>('/operator/gateway');
        const text = sshdLines({ publicKey: oneLine(public_key), from });
        return { json: { sshd_config: text }, text };
      },
    }),
  ],
};
