/** What of `andromeda admin` works on the host itself. What it does is handed in by `main.ts`. */
import { Argument } from 'commander';
import { type KeyKind, type KeyStep, keyKinds } from '../../domain/key-rotation.ts';
import { newPassword } from '../ask.ts';
import { usage } from '../exit.ts';
import type { BootstrapOptions, OnHost, RotateSecretsOptions, ServerCommands } from '../server-commands.ts';
import { type Noun, optional, own, required, type Verb } from '../verb.ts';

const configFlag = optional(
  '--config <file>',
  'the installation (YAML); where `service install` puts it otherwise',
);
const newFlags = [configFlag, optional('--yes', 'accept what it does to those who know the old one')];

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

const steps: [KeyStep, summary: string][] = [
  ['announce', 'make the next key, so that it is known before it is used'],
  ['switch', 'put the next key into use; the one before still holds'],
  ['back', 'put the key from before into use again'],
  ['withdraw', 'drop the next key'],
  ['retire', 'drop the key from before'],
];
const forceFlag = optional('--force', 'although the key is not known everywhere, or is still needed');

const stepVerb = (server: ServerCommands, step: KeyStep, summary: string) =>
  own<OnHost, [KeyKind]>({
    usage: step,
    summary,
    args: [
      new Argument('<key>', "the gateway's towards people or login nodes, or the built-in sign-in's").choices(
        keyKinds,
      ),
    ],
    example: `key ${step} host`,
    flags: step === 'switch' || step === 'retire' ? [configFlag, forceFlag] : [configFlag],
    run: (options, kind) => server.stepKey(step, kind, options),
  });

const keys = (server: ServerCommands): Noun => ({
  name: 'key',
  summary: "the service's own keys, and how one takes the place of another, on the host itself",
  verbs: [
    own<OnHost>({
      usage: 'list',
      summary: 'print which keys there are, and which the service uses',
      flags: [configFlag],
      run: (options) => server.listKeys(options),
    }),
    own<OnHost, [KeyKind | 'audit']>({
      usage: 'new',
      summary: 'make a new key when its file is gone; those who know the old one will notice',
      args: [
        new Argument(
          '<key>',
          "the gateway's towards people or login nodes, the built-in sign-in's, or the audit trail's",
        ).choices([...keyKinds, 'audit']),
      ],
      example: 'key new client --yes',
      flags: newFlags,
      run: (options, kind) => server.newKey(kind, options),
    }),
    ...steps.map(([step, summary]) => stepVerb(server, step, summary)),
  ],
});

const hostKey = (server: ServerCommands): Noun => ({
  name: 'host-key',
  summary: 'what the SSH gateway shows to people, on the host itself',
  verbs: [
    own<OnHost>({
      usage: 'new',
      summary: 'make a new host key when its file is gone; SSH clients report that it has changed',
      example: 'host-key new --yes',
      flags: newFlags,
      run: (options) => server.newKey('host', options),
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
    own<OnHost>({
      usage: 'list',
      summary: 'print their names, versions and ages',
      flags: [configFlag],
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

/** The service's own keys, and the secrets in a shared database. */
export const hostNouns = (server: ServerCommands): Noun[] => [keys(server), hostKey(server), secrets(server)];
