/**
 * Who may import whom in src, and why (`npm run check`). Each folder is a module with a boundary: it may import itself, the
 * shared files that belong to no folder, and the folders that `folders` names. Types count as imports everywhere.
 */

/** The folder that any but domain and api may import. */
const shared = 'lib';

/** What each folder may import besides itself, and why nothing else. */
const folders = {
  domain: [[], 'rules are pure: they must be readable and testable without the rest'],
  api: [[], 'it is made from the YAML documents, and holds nothing else'],
  lib: [['domain'], 'it serves every folder, and knows none'],
  ssh: [['domain'], 'it is what both ends of SSH need, and neither of them'],
  store: [['domain'], 'the database knows the rules, and nothing of who asks or over what wire'],
  business: [['domain', 'store', 'api'], 'an API shares state with other folders through the store only'],
  platform: [['domain', 'store', 'api'], 'an API shares state with other folders through the store only'],
  identity: [['domain', 'store'], 'who someone is does not depend on what they ask for'],
  acme: [['http'], 'it is handed what to do with a certificate, and knows nothing of what is served'],
  audit: [['domain', 'store'], 'it reads the trail, and knows nothing of what entries are about'],
  backup: [
    ['domain', 'store', 'ssh'],
    'it copies what the store has, and knows nothing of what that is about',
  ],
  gateway: [['domain', 'store', 'ssh'], 'the login decision is handed to it; it only obeys'],
  'gateway-process': [
    ['domain', 'gateway'],
    'a gateway process carries no database; the service hands in what it knows',
  ],
  sync: [['domain', 'store', 'ssh'], 'reconciling reads the present truth, not what another part remembers'],
  http: [['domain', 'api'], 'operations are handed to it by app, so that it mounts both APIs alike'],
  cli: [['domain', 'api'], 'the client talks to the server over HTTP only, and must start quickly'],
  console: [
    ['domain', 'store', 'http'],
    'the APIs are handed to it as listeners, so that it can do nothing that they do not allow',
  ],
  clients: [['domain', 'http'], 'people have them without a token, so it knows nothing of anybody'],
  config: [['domain', 'api', 'http'], 'it says what is wanted, and starts nothing'],
  app: [
    [
      'domain',
      'store',
      'api',
      'business',
      'platform',
      'identity',
      'acme',
      'audit',
      'backup',
      'gateway',
      'gateway-process',
      'ssh',
      'sync',
      'http',
      'console',
      'clients',
      'config',
    ],
    'it composes the service, and knows nothing of the command line',
  ],
  host: [
    ['domain', 'store', 'api', 'identity', 'ssh', 'http', 'config', 'backup', 'clients', 'app'],
    'it starts the service, and is started by main',
  ],
};

/** The only folders that may import a package, and why. */
const packages = {
  express: [['http', 'clients'], 'operations know nothing of HTTP'],
  ssh2: [['gateway', 'sync/drivers/simulated/login-node'], 'SSH is theirs alone'],
  '@napi-rs/keyring': [['cli'], 'a session belongs to whoever signed in'],
  commander: [['cli'], 'the server has no command line of its own'],
  'better-sqlite3': [['store/dialects'], 'another database must be able to take its place'],
  pg: [['store/dialects'], 'another database must be able to take its place'],
  kysely: [['store'], 'queries live in one folder'],
  'oidc-provider': [['identity'], 'the embedded issuer is a part of identity'],
  'acme-client': [['acme'], 'certificates are its business alone'],
  '@kubernetes/client-node': [['sync'], 'only a driver speaks with API servers'],
  s3mini: [['backup'], 'backups alone are kept elsewhere'],
  'age-encryption': [['backup'], 'backups alone leave the machine'],
  '@opentelemetry/api': [['app'], 'the rest knows spans, and not where they go'],
  '@opentelemetry/sdk-trace': [['app'], 'the rest knows spans, and not where they go'],
  'node-pty': [['sync/drivers/simulated/login-node'], 'terminals exist on login nodes only'],
};

const folderRules = Object.entries(folders).map(([folder, [others, comment]]) => ({
  name: `${folder}-imports-${others.join('-and-') || 'nothing'}`,
  comment,
  severity: 'error',
  from: { path: `^src/${folder}/` },
  to: {
    path: '^src/',
    pathNot: `^src/(${[folder, ...others, ...(folder === 'domain' || folder === 'api' ? [] : [shared])].join('|')})/`,
  },
}));

const packageRules = Object.entries(packages).map(([name, [homes, comment]]) => ({
  name: `${name}-only-in-${homes.join('-and-')}`,
  comment,
  severity: 'error',
  from: { path: '^src/', pathNot: `^src/(${homes.join('|')})/` },
  to: { path: `^node_modules/(@types/)?${name}/` },
}));

export default {
  forbidden: [
    {
      name: 'every-folder-has-its-rule',
      severity: 'error',
      from: { path: '^src/[^/]+/', pathNot: `^src/(${Object.keys(folders).join('|')})/` },
      to: {},
    },
    ...folderRules,
    ...packageRules,
    {
      name: 'domain-is-pure',
      comment: 'nothing in it does I/O: of Node it may have only crypto, of npm nothing, and no log',
      severity: 'error',
      from: { path: '^src/domain/' },
      to: { pathNot: '^src/domain/|^(node:)?crypto$' },
    },
    {
      name: 'released-migrations-stay-what-they-were',
      comment: 'a migration imports nothing of today’s code',
      severity: 'error',
      from: { path: '^src/store/migrations/\\d' },
      to: { path: '^src/' },
    },
    {
      name: 'rows-stay-in-the-store',
      comment: 'each aggregate maps its rows to a type of the domain, once',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/store/' },
      to: { path: '^src/store/schema[.]ts$' },
    },
    {
      name: 'dialects-only-through-the-engine',
      comment: 'another database engine takes the place of SQLite there and nowhere else',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/store/(dialects/|engine[.]ts$)' },
      to: { path: '^src/store/dialects/' },
    },
    {
      name: 'only-main-lies-loose',
      severity: 'error',
      from: { path: '^src/[^/]+$', pathNot: '^src/main[.]ts$' },
      to: {},
    },
    {
      name: 'login-node-stands-for-another-machine',
      comment: 'it has no database of ours, and knows nothing of the sync loop',
      severity: 'error',
      from: { path: '^src/sync/drivers/simulated/login-node/' },
      to: { path: '^src/', pathNot: '^src/(domain|lib|ssh|sync/drivers/simulated/login-node)/' },
    },
    {
      name: 'no-circles',
      comment: 'types included',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'no-orphans',
      comment: 'nobody imports it: it can go. (Entry files are named by a path, and not imported.)',
      severity: 'error',
      from: { orphan: true, path: '[.]ts$', pathNot: '^src/main[.]ts$|^src/store/migrations/' },
      to: {},
    },
    {
      name: 'packages-are-declared',
      comment:
        'an import is of a file that exists, of a package that package.json names, or of Node by its prefix',
      severity: 'error',
      from: {},
      to: { dependencyTypes: ['npm-no-pkg', 'npm-unknown', 'unknown', 'undetermined'] },
    },
    {
      name: 'the-program-needs-no-development-package',
      comment: 'types aside, which are gone when it runs',
      severity: 'error',
      from: { path: '^src/' },
      to: { dependencyTypes: ['npm-dev'], dependencyTypesNot: ['type-only'] },
    },
    { name: 'imports-resolve', severity: 'error', from: {}, to: { couldNotResolve: true } },
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '^src/(http/docs|console/app)/' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default', 'types'],
    },
  },
};
