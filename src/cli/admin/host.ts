/** What of `andromeda admin` works on the host itself. What it does is handed in by `main.ts`. */
import { Argument } from 'commander';
import { type KeyKind, keyKinds, usualKeepDays } from '../../domain/key-rotation.ts';
import { newPassword } from '../ask.ts';
import { usage } from '../exit.ts';
import type {
  BootstrapOptions,
  ListOptions,
  OnHost,
  RotateSecretsOptions,
  ServerCommands,
} from '../server-commands.ts';
import { jsonFlag, type Noun, optional, own, required, type Verb } from '../verb.ts';

const configFlag = optional(
  '--config <file>',
  'the installation (YAML); where `service install` puts it otherwise',
);

export const bootstrap = (server: ServerCommands): Verb =>
  own<BootstrapOptions>({
    usage: 'bootstrap',
    summary: 'make the first operator, on the host itself, in the data directory',
    example: 'bootstrap --config andromeda.yaml --email ada@physics.example',
    flags: [
      configFlag,
      required('--email <address>', 'the person who signs in with this verified address'),
      optional('--name <name>', 'how they are called'),
    ],
    run: (options) => server.bootstrap(options, newPassword),
  });

export const acceptBreak = (server: ServerCommands): Verb =>
  own<OnHost, [string]>({
    usage: 'accept-break',
    summary: 'have the audit trail go on behind an entry that does not fit, on the host itself; for good',
    args: [new Argument('<number>', 'the entry that `audit verify` names')],
    example: 'audit accept-break 4711',
    flags: [configFlag],
    async run(options, text) {
      if (!/^[1-9]\d{0,14}$/.test(text)) throw usage(`'${text}' is no number of an entry.`);
      return server.acceptAuditBreak(Number(text), options);
    },
  });

const keys = (server: ServerCommands): Noun => ({
  name: 'key',
  summary: "the service's own keys, and how one takes the place of another, on the host itself",
  verbs: [
    own<ListOptions>({
      usage: 'list',
      summary: 'print which keys there are, and which the service uses',
      flags: [configFlag, jsonFlag],
      run: (options) => server.listKeys(options),
    }),
    own<OnHost & { keep?: string; yes?: boolean }, [KeyKind]>({
      usage: 'new',
      summary:
        'put another key beside one: both hold, the new one is used later, and the former goes by itself',
      args: [
        new Argument(
          '<key>',
          "the gateway's towards people or login nodes, the built-in sign-in's, or the audit trail's",
        ).choices(keyKinds),
      ],
      example: ['key new host', 'key new issuer --keep 0'],
      flags: [
        configFlag,
        optional(
          '--keep <days>',
          `how long the former holds (${usualKeepDays}); 0: not at all, as for a stolen one`,
        ),
        optional(
          '--yes',
          'make one in the place of a key that is gone, for those who know that one to notice',
        ),
      ],
      async run({ keep, ...options }, kind) {
        if (keep !== undefined && !/^\d{1,4}$/.test(keep)) throw usage(`'${keep}' is no number of days.`);
        return server.newKey(kind, { ...options, ...(keep !== undefined && { keep: Number(keep) }) });
      },
    }),
  ],
});

const secrets = (server: ServerCommands): Noun => ({
  name: 'secrets',
  summary: "the service's own keys in a database that several servers share, on the host itself",
  verbs: [
    own<object, [string]>({
      usage: 'new-key',
      summary: 'make the key that they are encrypted with, which is on every server and not in the database',
      args: [new Argument('<file>', 'a file that is not there yet')],
      example: 'secrets new-key /etc/andromeda/secrets.key',
      run: (_, file) => server.newSecretsKey(file),
    }),
    own<ListOptions>({
      usage: 'list',
      summary: 'print their names, versions and ages',
      flags: [configFlag, jsonFlag],
      run: (options) => server.listSecrets(options),
    }),
    own<RotateSecretsOptions>({
      usage: 'rotate',
      summary: 'encrypt all of them with another key',
      example: 'secrets rotate --from secrets.key --to secrets-2.key',
      flags: [
        configFlag,
        required('--from <file>', 'the key that they are encrypted with'),
        required('--to <file>', 'the key that takes its place'),
      ],
      run: (options) => server.rotateSecrets(options),
    }),
  ],
});

export const hostNouns = (server: ServerCommands): Noun[] => [keys(server), secrets(server)];
