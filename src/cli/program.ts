/**
 * The command line. It owns the commands, their output and exit statuses, the session on this machine, and the HTTP calls to
 * the two APIs. It must not depend on the server: it imports only `src/domain`, `src/lib` and its own files; `main.ts` passes
 * in what needs the server.
 *
 *   argv → commander (here) → verb.ts → commands/*.ts, everyday/*.ts, admin/*.ts → session/ (who) → net/ (the wire)
 *   → stdout, or one sentence on stderr → exit.ts
 *
 * Each command loads its module when it runs, because people notice start-up time.
 */
import { Argument, Command } from 'commander';
import { visibleLine } from '../domain/text.ts';
import { type CommandIo, commandIo, processIo, withCommandIo } from '../lib/command-io.ts';
import type { CallOptions } from './commands/call.ts';
import type { VersionOptions } from './commands/version.ts';
import type { DoctorOptions } from './doctor/index.ts';
import type { EnvironmentOptions } from './environment.ts';
import { contractStatus, endDespiteThreads, exitStatus, usage } from './exit.ts';
import { report, watchOutput } from './output.ts';
import type { ServeOptions, ServerCommands } from './server-commands.ts';
import {
  addAll,
  addVerb,
  environmentFlags,
  example,
  jsonFlag,
  type Noun,
  optional,
  outputFlag,
  own,
  repeatable,
  type Verb,
} from './verb.ts';

/** Runs the command line of this process; resolves to the exit status. */
export async function runProcess(
  argv: readonly string[],
  server: ServerCommands | undefined,
): Promise<number> {
  watchOutput();
  const status = await run(argv, processIo, server);
  endDespiteThreads(status);
  return status;
}

/**
 * Runs one command line (without `node` and the script's name) and resolves to the exit status. Without `server` it is the
 * client alone, which has no commands for the host.
 */
export function run(
  argv: readonly string[],
  io: CommandIo,
  server: ServerCommands | undefined,
): Promise<number> {
  return withCommandIo(io, () => perform(argv, server));
}

async function perform(argv: readonly string[], server: ServerCommands | undefined): Promise<number> {
  let status: number = exitStatus.ok;
  const [first, ...rest] = argv;
  // Commander's own `help` knows only top-level commands.
  const line = first === '--version' ? ['version'] : first === 'help' ? [...rest, '--help'] : [...argv];
  const program = await createProgram(line, server, (ended) => {
    status = ended;
  });
  try {
    if (!server && first !== undefined && ['serve', ...installation].includes(first))
      throw usage(
        `This is the client alone; \`andromeda ${first}\` is for the host, where the whole program is.`,
      );
    if (first === 'help') requireCommand(program, rest);
    await program.parseAsync(line, { from: 'user' });
    return status;
  } catch (error) {
    return report(error);
  }
}

/** Creates the commands that `argv` may use; all of them for `completion`. `finish` receives the exit status. */
export async function createProgram(
  argv: readonly string[],
  server: ServerCommands | undefined,
  finish: (status: number) => void,
): Promise<Command> {
  const [first = ''] = argv;
  const whole = { prefix: '', finish };
  const program = emptyProgram(server !== undefined);
  if (server) addVerb(program, serve(server), whole);
  addVerb(program, call, whole).usage('[flags] <api> <METHOD> <path>').allowExcessArguments();
  addAll(program, [auth], whole);
  addAll(program, await everydayFor(first), { prefix: 'andromeda ', finish });
  const admin = program
    .command('admin')
    .description('operate the installation: its people, its clusters, its audit trail');
  // Some sixty commands, loaded only when `argv` names them.
  if (argv.includes('admin') || first === 'completion')
    (await import('./admin/program.ts')).addAdmin(admin, server, finish);
  if (server && (installation.includes(first) || !others.includes(first)))
    addAll(program, (await import('./host.ts')).onHost(server), whole);
  addAll(program, [doctor(server), completion(program), version(server)], whole);
  return program;
}

/** The everyday commands, in the order of the help text; each module is loaded on demand. */
const everyday: Record<string, () => Promise<Noun | Verb>> = {
  ssh: async () => (await import('./everyday/ssh.ts')).ssh,
  'ssh-config': async () => (await import('./everyday/ssh.ts')).sshConfig,
  code: async () => (await import('./everyday/ssh.ts')).code,
  keys: async () => (await import('./everyday/keys.ts')).keys,
  wait: async () => (await import('./everyday/wait.ts')).wait,
  clusters: async () => (await import('./everyday/clusters.ts')).clusters,
  machines: async () => (await import('./everyday/clusters.ts')).machines,
  jobs: async () => (await import('./everyday/jobs.ts')).jobs,
  gpus: async () => (await import('./everyday/jobs.ts')).gpus,
  'gpu-hours': async () => (await import('./everyday/jobs.ts')).gpuHours,
  storage: async () => (await import('./everyday/clusters.ts')).storage,
  kubeconfig: async () => (await import('./everyday/kubeconfig.ts')).kubeconfig,
  shell: async () => (await import('./everyday/keys.ts')).shell,
  members: async () => (await import('./everyday/members.ts')).members,
  teams: async () => (await import('./everyday/clusters.ts')).teams,
  access: async () => (await import('./everyday/access.ts')).access,
  'slurm-config': async () => (await import('./everyday/slurm-config.ts')).slurmConfig,
};

const installation = ['check', 'backup', 'restore', 'migrate', 'service', 'clients'];
/** First arguments that need none of the everyday commands. */
const others = ['serve', 'call', 'auth', 'admin', 'version', '--version', 'doctor', ...installation];

function everydayFor(first: string): Promise<(Noun | Verb)[]> {
  if (others.includes(first)) return Promise.resolve([]);
  const loads = Object.hasOwn(everyday, first) ? [everyday[first]] : Object.values(everyday);
  return Promise.all(loads.flatMap((load) => load?.() ?? []));
}

function emptyProgram(isWhole: boolean): Command {
  return new Command('andromeda')
    .description(
      isWhole
        ? 'Access to GPU clusters: the service, and the client of its two APIs'
        : 'Access to GPU clusters: the client',
    )
    .configureOutput({
      writeOut: (text) => commandIo().stdout.write(text),
      writeErr: (text) => commandIo().stderr.write(text),
      outputError: () => {}, // `report` prints it, in our wording
      getOutHelpWidth: () => commandIo().stdout.columns || helpWidth,
      getErrHelpWidth: () => commandIo().stderr.columns || helpWidth,
    })
    .configureHelp({ minWidthToWrap: 20 })
    .exitOverride()
    .hook('preAction', (_, command) => refuseEmptyPaths(command))
    .enablePositionalOptions() // lets `call` stop reading flags at its first argument
    .addHelpText('after', isWhole ? statuses + serveStatuses : statuses)
    .addHelpText(
      'after',
      example(...(isWhole ? ['andromeda serve --demo'] : []), 'andromeda ssh alpha', 'andromeda keys list'),
    );
}

const serve = (server: ServerCommands): Verb =>
  own<{ config?: string; demo?: true; data?: string }>({
    usage: 'serve',
    summary: 'run the service',
    example: ['andromeda serve --demo', 'andromeda serve --config andromeda.yaml'],
    flags: [
      optional('--config <file>', 'the installation to run (YAML)'),
      optional('--demo', 'run a demonstration on this machine, without a file'),
      optional('--data <dir>', 'where the demonstration keeps its data'),
    ],
    run: (options) => server.serve(serveOptions(options)),
  });

const call = own<CallOptions, string[]>({
  usage: 'call',
  summary: 'send one request to an API and print the body of its answer',
  args: [
    new Argument('<api>', 'business or platform'),
    new Argument('<METHOD>', 'GET, POST, PUT, PATCH, DELETE, HEAD or OPTIONS'),
    new Argument('<path>', 'begins with /, may carry a query'),
  ],
  example: [
    'andromeda call business GET /me',
    "andromeda call -H 'Idempotency-Key: 1' -H 'Audit-Reason: new laptop' -d @key.json \\\n      business POST /me/ssh-keys",
  ],
  flags: [
    repeatable("-H, --header <'name: value'>", 'add a request header'),
    optional(
      '-d, --data <value>',
      'request body: the value, @<path> for a file, @- for standard input',
    ).argParser(once),
    ...environmentFlags,
  ],
  passesOn: true, // contract, "Flag position"
  run: (options, ...args) =>
    contractStatus(async () => (await import('./commands/call.ts')).call(args, options)),
});

const credentialStore = `
The session is kept in the operating system's credential store or, where there is none, in a file
that only you can read. ANDROMEDA_CREDENTIAL_STORE=keyring or =file decides.
`;

const auth: Noun = {
  name: 'auth',
  summary: 'sign in, see who is signed in, sign out',
  verbs: [
    own<EnvironmentOptions>({
      usage: 'login',
      summary: 'sign in with a browser, here or on another device',
      note: credentialStore,
      example: 'andromeda auth login --url https://platform.example.org',
      flags: environmentFlags,
      run: (options) => contractStatus(async () => (await import('./commands/auth.ts')).login(options)),
    }),
    own<EnvironmentOptions & { output: string }>({
      usage: 'status',
      summary: 'print who is signed in, where and until when',
      example: ['andromeda auth status', 'andromeda auth status -o json'],
      flags: [...environmentFlags, outputFlag(['text', 'json', 'yaml'])],
      run: (options) => contractStatus(async () => (await import('./commands/auth.ts')).status(options)),
    }),
    own<EnvironmentOptions>({
      usage: 'logout',
      summary: 'end the session, here and at the issuer',
      example: 'andromeda auth logout --profile staging',
      flags: environmentFlags,
      run: (options) => contractStatus(async () => (await import('./commands/auth.ts')).logout(options)),
    }),
  ],
};

const doctorNote = `
Where an installation is on this host (andromeda.yaml here, or /etc/andromeda/andromeda.yaml), it is
about that one, unless a cluster, --profile or --url says otherwise.
`;

const doctor = (server: ServerCommands | undefined): Verb =>
  own<DoctorOptions, [string?]>({
    usage: 'doctor',
    summary: `find what is wrong between this machine and a shell${server ? ' or, on the host, with an installation' : ''}`,
    args: [new Argument('[cluster]', 'look at this cluster alone')],
    note: server ? doctorNote : '',
    example: [
      'andromeda doctor',
      'andromeda doctor alpha',
      ...(server ? ['andromeda doctor --config /etc/andromeda/andromeda.yaml'] : []),
    ],
    flags: [
      ...(server ? [optional('--config <file>', 'look at the installation on this host (YAML)')] : []),
      optional('--quiet', 'only print what is not well').default(false),
      jsonFlag,
      ...environmentFlags,
    ],
    run: async (options, cluster) => (await import('./doctor/index.ts')).doctor(cluster, options, server),
  });

const completion = (program: Command): Verb =>
  own<object, [string]>({
    usage: 'completion',
    summary: 'print a script that completes the commands and flags of this program in a shell',
    args: [new Argument('<shell>', 'bash, zsh or fish')],
    example: [
      'andromeda completion fish > ~/.config/fish/completions/andromeda.fish',
      'source <(andromeda completion bash)',
    ],
    run: async (_, shell) => (await import('./commands/completion.ts')).completion(shell, program),
  });

const version = (server: ServerCommands | undefined): Verb =>
  own<VersionOptions>({
    usage: 'version',
    summary: 'print the versions of this program, of what it runs on, and of the service it is for',
    example: ['andromeda version', 'andromeda version -o json'],
    flags: [
      ...environmentFlags,
      outputFlag(['text', 'json', 'yaml']),
      optional('--licences', 'the licences of everything in the program instead'),
    ],
    run: async (options) => (await import('./commands/version.ts')).version(options, server?.components),
  });

/** Columns of a help text without a terminal, or with one of unknown width. */
const helpWidth = 100;

const statuses = `
Exit statuses:
  0    it is done                  5    there is no such thing
  1    it did not succeed          6    something stands in the way (a conflict)
  2    the command line is wrong   7    the service cannot be reached
  3    you are not signed in       130  Ctrl-C
  4    you may not do that
\`call\` and \`auth\` know 0, 1, 2 and 130 only; \`ssh\` ends with the status of ssh itself.`;

const serveStatuses = ` \`serve\` ends
with 78 where its configuration or its data cannot be used, and with 69 where a port is taken.`;

function serveOptions({ config, demo, data }: { config?: string; demo?: true; data?: string }): ServeOptions {
  if (config !== undefined && demo) throw usage('Give either --config or --demo, not both.');
  if (config === undefined && !demo)
    throw usage('Say what to serve: `andromeda serve --config FILE`, or `andromeda serve --demo` to try it.');
  if (data !== undefined && !demo)
    throw usage('--data goes with --demo; with --config, the file names dataDir.');
  return {
    demo: demo ?? false,
    ...(config !== undefined && { config }),
    ...(data !== undefined && { data }),
  };
}

function requireCommand(program: Command, names: readonly string[]): void {
  let command = program;
  for (const name of names.filter((one) => !one.startsWith('-'))) {
    if (command.commands.length === 0) return;
    const next = command.commands.find((one) => one.name() === name);
    if (!next) throw usage(`Unknown command '${visibleLine(name)}'; see \`andromeda --help\`.`);
    command = next;
  }
}

/** Refuses an empty path, which is most often an unset variable, and would mean the current directory. */
function refuseEmptyPaths(command: Command): void {
  const given: [string, unknown][] = [
    ...command.options.map((option): [string, unknown] => [
      option.flags,
      command.getOptionValue(option.attributeName()),
    ]),
    ...command.registeredArguments.map((argument, index): [string, unknown] => [
      `<${argument.name()}>`,
      command.args[index],
    ]),
  ];
  const empty = given.find(([flags, value]) => value === '' && /[<[](?:file|dir)[>\]]/.test(flags));
  if (empty) throw usage(`${empty[0]} is empty; name a file or a directory.`);
}

function once(value: string, previous: string | undefined): string {
  if (previous !== undefined) throw usage('-d/--data may be given once.');
  return value;
}
