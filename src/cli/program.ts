/**
 * The command line. It owns the commands people type, what they print and their exit statuses, the session
 * on this machine, and the HTTP calls to the two APIs. It must not know the server's inside: it imports
 * `src/domain` and its own files only; what needs the server is handed in by `main.ts`.
 *
 *   argv → commander (here) → commands/*.ts, or verb.ts → everyday/*.ts, admin/*.ts → session/ (who) → net/ (the wire)
 *   → stdout, or one sentence on stderr → exit.ts
 *
 * Every command loads its module when it runs: start-up time is part of what people notice.
 */
import { Command } from 'commander';
import { visibleLine } from '../domain/visible-text.ts';
import type { CallOptions } from './commands/call.ts';
import type { DoctorOptions } from './doctor/index.ts';
import type { EnvironmentOptions } from './environment.ts';
import { everyday } from './everyday/index.ts';
import { contractStatus, endDespiteThreads, exitStatus, type Outcome, usage } from './exit.ts';
import { report, watchOutput } from './output.ts';
import type { ServeOptions, ServerCommands } from './server-commands.ts';
import { collect, environmentFlags, example, outputFlag } from './verb.ts';

/**
 * Runs one command line (without `node` and the script's name) and resolves to the exit status. Without the server's part
 * it is the client alone, which has no commands for the host.
 */
export async function run(argv: readonly string[], server: ServerCommands | undefined): Promise<number> {
  watchOutput();
  const status = await perform(argv, server);
  endDespiteThreads(status);
  return status;
}

async function perform(argv: readonly string[], server: ServerCommands | undefined): Promise<number> {
  let status: number = exitStatus.ok;
  const [first, ...rest] = argv;
  // Commander's own `help` knows only the outermost commands.
  const line = first === '--version' ? ['version'] : first === 'help' ? [...rest, '--help'] : [...argv];
  const program = await createProgram(line, server, (ended) => {
    status = ended;
  });
  try {
    if (!server && first !== undefined && onHost.includes(first))
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

/** All commands that `argv` may ask for; `completion` has every one. `finish` is given the exit status. */
export async function createProgram(
  argv: readonly string[],
  server: ServerCommands | undefined,
  finish: (status: number) => void,
): Promise<Command> {
  const done = (outcome: Outcome) => finish(exitStatus[outcome]);
  const program = emptyProgram(server !== undefined);
  if (server) addServe(program, server, finish);
  addCall(program, done);
  addAuth(program, done);
  await addEveryday(program, argv[0], finish);
  await addAdmin(program, argv, server, finish);
  if (server && (argv[0] === undefined || installation.includes(argv[0]) || !others.includes(argv[0])))
    (await import('./installation.ts')).addInstallation(program, server, finish);
  addDoctor(program, server, finish);
  addCompletion(program, done);
  addVersion(program, server, done);
  return program;
}

function emptyProgram(isWhole: boolean): Command {
  return new Command('andromeda')
    .description(
      isWhole
        ? 'Access to GPU clusters: the service, and the client of its two APIs'
        : 'Access to GPU clusters: the client',
    )
    .configureOutput({
      outputError: () => {}, // `report` prints it, in our wording
      getOutHelpWidth: () => process.stdout.columns || helpWidth,
      getErrHelpWidth: () => process.stderr.columns || helpWidth,
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

function addServe(program: Command, server: ServerCommands, finish: (status: number) => void): void {
  program
    .command('serve')
    .description('run the service')
    .option('--config <file>', 'the installation to run (YAML)')
    .option('--demo', 'run a demonstration on this machine, without a file')
    .option('--data <dir>', 'where the demonstration keeps its data')
    .addHelpText('after', example('andromeda serve --demo', 'andromeda serve --config andromeda.yaml'))
    .action(async (options: { config?: string; demo?: true; data?: string }) =>
      finish(await server.serve(serveOptions(options))),
    );
}

function addCall(program: Command, done: (outcome: Outcome) => void): void {
  const call = program
    .command('call')
    .description('send one request to an API and print the body of its answer')
    .usage('[flags] <api> <METHOD> <path>')
    .argument('<api>', 'business or platform')
    .argument('<METHOD>', 'GET, POST, PUT, PATCH, DELETE, HEAD or OPTIONS')
    .argument('<path>', 'begins with /, may carry a query')
    .passThroughOptions() // contract, "Flag position"
    .allowExcessArguments() // refused by the command, which can say why
    .option("-H, --header <'name: value'>", 'add a request header; repeatable', collect)
    .option('-d, --data <value>', 'request body: the value, @<path> for a file, @- for standard input', once);
  environmentFlags(call)
    .addHelpText(
      'after',
      example(
        'andromeda call business GET /me',
        "andromeda call -H 'Idempotency-Key: 1' -H 'Audit-Reason: new laptop' -d @key.json \\\n      business POST /me/ssh-keys",
      ),
    )
    .action(async (_api, _method, _path, options: CallOptions, command: Command) =>
      done(
        await contractStatus(async () => (await import('./commands/call.ts')).call(command.args, options)),
      ),
    );
}

/** Some forty commands, loaded only where they are asked for. */
async function addAdmin(
  program: Command,
  argv: readonly string[],
  server: ServerCommands | undefined,
  finish: (status: number) => void,
): Promise<void> {
  const admin = program
    .command('admin')
    .description('operate the installation: its people, its clusters, its audit trail');
  if (argv.includes('admin') || argv[0] === 'completion')
    (await import('./admin/program.ts')).addAdmin(admin, server, finish);
}

function addCompletion(program: Command, done: (outcome: Outcome) => void): void {
  program
    .command('completion')
    .description('print a script that completes the commands and flags of this program in a shell')
    .argument('<shell>', 'bash, zsh or fish')
    .addHelpText(
      'after',
      example(
        'andromeda completion fish > ~/.config/fish/completions/andromeda.fish',
        'source <(andromeda completion bash)',
      ),
    )
    .action(async (shell: string) =>
      done((await import('./commands/completion.ts')).completion(shell, program)),
    );
}

function addVersion(
  program: Command,
  server: ServerCommands | undefined,
  done: (outcome: Outcome) => void,
): void {
  environmentFlags(
    program
      .command('version')
      .description('print the versions of this program, of what it runs on, and of the service it is for'),
  )
    .addOption(outputFlag(['text', 'json', 'yaml']))
    .addHelpText('after', example('andromeda version', 'andromeda version -o json'))
    .action(async (options: EnvironmentOptions & { output: string }) =>
      done(await (await import('./commands/version.ts')).version(options, server?.components)),
    );
}

/** For a laptop; and for the host, where this is the whole program. */
function addDoctor(
  program: Command,
  server: ServerCommands | undefined,
  finish: (status: number) => void,
): void {
  const command = program
    .command('doctor')
    .description(
      server
        ? 'find what is wrong between this machine and a shell or, on the host, with an installation'
        : 'find what is wrong between this machine and a shell',
    )
    .argument('[cluster]', 'look at this cluster alone');
  if (server) command.option('--config <file>', 'look at the installation on this host (YAML)');
  environmentFlags(
    command
      .option('--quiet', 'only print what is not well', false)
      .option('--json', 'print it as JSON', false),
  )
    .addHelpText(
      'after',
      (server ? doctorNote : '') +
        example(
          'andromeda doctor',
          'andromeda doctor alpha',
          ...(server ? ['andromeda doctor --config /etc/andromeda/andromeda.yaml'] : []),
        ),
    )
    .action(async (cluster: string | undefined, options: DoctorOptions) =>
      finish(await (await import('./doctor/index.ts')).doctor(cluster, options, server)),
    );
}

/** What a command line begins with that needs none of the everyday commands. */
const installation = ['check', 'backup', 'restore', 'migrate', 'service', 'clients'];
/** What only the whole program has. */
const onHost = ['serve', ...installation];
const others = ['serve', 'call', 'auth', 'admin', 'version', '--version', 'doctor', ...installation];

/** Adds the one that was asked for; all of them where the program explains itself. */
async function addEveryday(
  program: Command,
  first: string | undefined,
  finish: (status: number) => void,
): Promise<void> {
  if (first !== undefined && others.includes(first)) return;
  const asked = first !== undefined && Object.hasOwn(everyday, first) ? [everyday[first]] : undefined;
  const { addNoun, addVerb } = await import('./verb.ts');
  const part = { prefix: 'andromeda', finish };
  for (const load of asked ?? Object.values(everyday)) {
    const loaded = await load?.();
    if (loaded === undefined) continue;
    if ('verbs' in loaded) addNoun(program, loaded, part);
    else addVerb(program, loaded, part);
  }
}

/** Columns of a help text that goes to no terminal, or to one that does not say how wide it is. */
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

const doctorNote = `
Where an installation is on this host (andromeda.yaml here, or /etc/andromeda/andromeda.yaml), it is
about that one, unless a cluster, --profile or --url says otherwise.
`;

const credentialStore = `
The session is kept in the operating system's credential store or, where there is none, in a file
that only you can read. ANDROMEDA_CREDENTIAL_STORE=keyring or =file decides.
`;

function addAuth(program: Command, done: (outcome: Outcome) => void): void {
  const auth = program
    .command('auth')
    .description('sign in, see who is signed in, sign out')
    .addHelpText('after', example('andromeda auth login --url https://platform.example.org'));

  environmentFlags(auth.command('login').description('sign in with a browser, here or on another device'))
    .addHelpText(
      'after',
      credentialStore + example('andromeda auth login --url https://platform.example.org'),
    )
    .action(async (options: EnvironmentOptions) =>
      done(await contractStatus(async () => (await import('./commands/auth.ts')).login(options))),
    );
  environmentFlags(auth.command('status').description('print who is signed in, where and until when'))
    .addOption(outputFlag(['text', 'json', 'yaml']))
    .addHelpText('after', example('andromeda auth status', 'andromeda auth status -o json'))
    .action(async (options: EnvironmentOptions & { output: string }) =>
      done(await contractStatus(async () => (await import('./commands/auth.ts')).status(options))),
    );
  environmentFlags(auth.command('logout').description('end the session, here and at the issuer'))
    .addHelpText('after', example('andromeda auth logout --profile staging'))
    .action(async (options: EnvironmentOptions) =>
      done(await contractStatus(async () => (await import('./commands/auth.ts')).logout(options))),
    );
}

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

/** Throws `usage` when the arguments name no command. */
function requireCommand(program: Command, names: readonly string[]): void {
  let command = program;
  for (const name of names.filter((one) => !one.startsWith('-'))) {
    if (command.commands.length === 0) return;
    const next = command.commands.find((one) => one.name() === name);
    if (!next) throw usage(`Unknown command '${visibleLine(name)}'; see \`andromeda --help\`.`);
    command = next;
  }
}

/** A file or directory without a name is most often a variable that was never set, and the path "" is where we are. */
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
