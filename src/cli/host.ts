/** Commands for the host itself: check, backup, restore, migration, service and keys. `main.ts` passes in their implementation. */
import { Argument } from 'commander';
import { type KeyKind, keyKinds, usualKeepDays } from '../domain/key-rotation.ts';
import { newPassword } from './ask.ts';
import { usage } from './exit.ts';
import { interruptible, withProgress } from './progress.ts';
import type {
  BootstrapOptions,
  CheckOptions,
  InstallationOptions,
  ListOptions,
  MigrateOptions,
  OnHost,
  RestoreOptions,
  RotateSecretsOptions,
  ServerCommands,
  ServiceOptions,
} from './server-commands.ts';
import { jsonFlag, type Noun, optional, own, required, type Verb } from './verb.ts';

const configFlag = optional(
  '--config <file>',
  'the installation (andromeda.yaml, else /etc/andromeda/andromeda.yaml)',
);
const dataFlag = optional('--data <dir>', 'its data directory, in place of that');
const unitConfigFlag = optional('--config <file>', 'the configuration it runs with').default(
  '/etc/andromeda/andromeda.yaml',
);
const unitFlags = [
  unitConfigFlag,
  optional('--user <name>', 'the account it runs as').default('andromeda'),
  optional('--root <dir>', 'install into this directory, for an image').default('/'),
];

export const onHost = (server: ServerCommands): (Noun | Verb)[] => [
  own<CheckOptions>({
    usage: 'check',
    summary: 'say whether the service could start: settings, files, certificates, ports, database',
    example: 'andromeda check --config andromeda.yaml',
    flags: [configFlag, optional('--quiet', 'only print what is not well').default(false), jsonFlag],
    run: (options) => server.check(options),
  }),
  backup(server),
  restore(server),
  migrate(server),
  {
    name: 'service',
    summary: 'run the service under systemd, as an account of its own',
    verbs: serviceVerbs(server),
  },
];

const serviceVerbs = (server: ServerCommands): Verb[] => [
  own<ServiceOptions>({
    usage: 'install',
    summary: 'make the accounts, a configuration and the units',
    example: ['andromeda service install --dry-run', 'sudo ./andromeda service install'],
    flags: [
      ...unitFlags,
      optional('--dry-run', 'only print what it would do').default(false),
      optional('--no-enable', 'leave it as it is whether the service starts with the machine'),
    ],
    run: (options) => server.installService(options),
  }),
  own({
    usage: 'upgrade',
    summary:
      'put this program in the place of the installed one; the old one comes back if it does not serve',
    example: 'sudo ./andromeda service upgrade',
    run: () => server.upgradeService(),
  }),
  own({
    usage: 'rollback',
    summary: 'go back to the version before the last upgrade: program, units, and database if it changed',
    example: 'sudo andromeda service rollback',
    run: () => server.rollbackService(),
  }),
  own<Omit<ServiceOptions, 'dryRun' | 'enable'>>({
    usage: 'print',
    summary: 'print the units',
    example: 'andromeda service print',
    flags: unitFlags,
    run: (options) => server.printUnit({ ...options, dryRun: true, enable: false }),
  }),
  own<{ config: string }>({
    usage: 'reload',
    summary:
      'have the service that runs here take up its settings and certificates; what is wrong changes nothing',
    example: 'andromeda service reload --config andromeda.yaml',
    flags: [unitConfigFlag],
    run: (options) => server.reloadService(options),
  }),
  own<{ config: string }>({
    usage: 'ready',
    summary: 'ask the service that runs here whether it serves, as containers do again and again',
    example: 'andromeda service ready --config andromeda.yaml',
    flags: [unitConfigFlag],
    run: (options) => server.askService(options),
  }),
];

const backup = (server: ServerCommands): Verb =>
  own<InstallationOptions & { list?: true; json: boolean }, [string?]>({
    usage: 'backup',
    summary: 'write the whole installation to a file while it runs, and check it',
    args: [new Argument('[file]', 'where to; left out: to where the configuration keeps backups')],
    example: ['andromeda backup /srv/backup/andromeda.db --config andromeda.yaml', 'andromeda backup --list'],
    flags: [configFlag, dataFlag, optional('--list', 'only print which are kept there'), jsonFlag],
    async run({ list, json, ...options }, file) {
      if (list && file !== undefined) throw usage('Give either <file> or --list, not both.');
      if (list) return server.listBackups({ ...checked(options), json });
      const whole = checked(options);
      return interruptible('Cancelled; no backup was made.', (signal) =>
        withProgress((show) => {
          const onProgress = (part: number) => show(`${Math.floor(part * 100)} %`);
          return server.backup(file, whole, { onProgress, signal });
        }),
      );
    },
  });

const restore = (server: ServerCommands): Verb =>
  own<RestoreOptions, [string?]>({
    usage: 'restore',
    summary: 'put a backup in place of what the data directory holds',
    args: [new Argument('[file]', 'a backup: a file, or newest')],
    example: [
      'andromeda restore /srv/backup/andromeda.db --config andromeda.yaml',
      'andromeda restore newest',
      'andromeda restore --drill',
    ],
    flags: [
      configFlag,
      dataFlag,
      optional('--drill', 'change nothing: restore it to a temporary place, check it, and remove it again'),
    ],
    async run(options, file) {
      if (file === undefined && !options.drill) throw usage('Say what to restore: a file, or newest.');
      return interruptible('Cancelled; nothing was changed.', (signal) =>
        server.restore(file, checked(options), signal),
      );
    },
  });

const engine = (flag: string, description: string) =>
  required(flag, description).choices(['sqlite', 'postgres']);

const migrate = (server: ServerCommands): Verb =>
  own<MigrateOptions & { from: string }>({
    usage: 'migrate',
    summary: "copy a stopped installation from SQLite's file to a PostgreSQL, or back",
    example: 'andromeda migrate --from sqlite --to postgres --config /etc/andromeda/andromeda.yaml',
    flags: [
      engine('--from <engine>', 'where it is'),
      engine('--to <engine>', 'where it is to be, empty'),
      configFlag,
    ],
    async run({ from, to, ...options }) {
      if (from === to) throw usage(`--from and --to are both ${to}; one is sqlite, the other one postgres.`);
      return interruptible('Cancelled; nothing was copied.', (signal) =>
        withProgress((onProgress) => server.migrate({ to, ...options }, { onProgress, signal })),
      );
    },
  });

function checked<Options extends InstallationOptions>(options: Options): Options {
  if (options.config !== undefined && options.data !== undefined)
    throw usage('Give either --config or --data, not both.');
  return options;
}

/** `--config` of the commands of `andromeda admin`. */
const ownConfigFlag = optional(
  '--config <file>',
  'the installation (YAML); where `service install` puts it otherwise',
);

export const bootstrap = (server: ServerCommands): Verb =>
  own<BootstrapOptions>({
    usage: 'bootstrap',
    summary: 'make the first operator, on the host itself, in the data directory',
    example: 'bootstrap --config andromeda.yaml --email ada@physics.example',
    flags: [
      ownConfigFlag,
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
    flags: [ownConfigFlag],
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
      flags: [ownConfigFlag, jsonFlag],
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
        ownConfigFlag,
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
      flags: [ownConfigFlag, jsonFlag],
      run: (options) => server.listSecrets(options),
    }),
    own<RotateSecretsOptions>({
      usage: 'rotate',
      summary: 'encrypt all of them with another key',
      example: 'secrets rotate --from secrets.key --to secrets-2.key',
      flags: [
        ownConfigFlag,
        required('--from <file>', 'the key that they are encrypted with'),
        required('--to <file>', 'the key that takes its place'),
      ],
      run: (options) => server.rotateSecrets(options),
    }),
  ],
});

export const hostNouns = (server: ServerCommands): Noun[] => [keys(server), secrets(server)];
