/**
 * Who may import whom in src, and why (`npm run check`). Each folder named here is a module with a boundary: it may import itself and
 * the folders that `folders` names. Types count as imports everywhere.
 */

/** The folder that all but these may import. */
const shared = 'lib';
const withoutShared = ['domain', 'api/generated', 'console/app'];

/** What each folder may import besides itself, and why nothing else. */
const folders = {
  domain: [[], 'rules are pure: they must be readable and testable without the rest'],
  lib: [['domain'], 'it serves every folder, and knows none'],
  store: [['domain'], 'the database knows the rules, and nothing of who asks or over what wire'],
  'gateway/ssh': [['domain'], 'the login decision is handed to it; it only obeys'],
  'gateway/process': [
    ['domain', 'gateway/ssh'],
    'a gateway process carries no database; the service hands in what it knows',
  ],
  sync: [['domain', 'store'], 'reconciling reads the present truth, not what another part remembers'],
  'api/generated': [[], 'it is made from the YAML documents, and holds nothing else'],
  'api/http': [['domain', 'api/generated'], 'operations are handed to it, so that it mounts both APIs alike'],
  'api/identity': [['domain', 'store'], 'who someone is does not depend on what they ask for'],
  'api/business': [
    ['domain', 'store', 'api/generated'],
    'an API shares state with other folders through the store only',
  ],
  'api/platform': [
    ['domain', 'store', 'api/generated'],
    'an API shares state with other folders through the store only',
  ],
  'console/server': [
    ['domain', 'store', 'api/http'],
    'the APIs are handed to it as listeners, so that it can do nothing that they do not allow',
  ],
  'console/app': [
    ['domain', 'api/generated'],
    'pages run in browsers: they have the rules and the types of the APIs, and nothing of the server',
  ],
  cli: [['domain', 'api/generated'], 'the client talks to the server over HTTP only, and must start quickly'],
  'service/config': [['domain', 'api/generated', 'api/http'], 'it says what is wanted, and starts nothing'],
  'service/certificates': [
    ['api/http'],
    'it is handed what to do with a certificate, and knows nothing of what is served',
  ],
  'service/audit': [['domain', 'store'], 'it reads the trail, and knows nothing of what entries are about'],
  'service/backup': [
    ['domain', 'store'],
    'it copies what the store has, and knows nothing of what that is about',
  ],
  'service/downloads': [
    ['domain', 'api/http'],
    'people have them without a token, so it knows nothing of them',
  ],
  'service/compose': [
    [
      'domain',
      'store',
      'api',
      'gateway',
      'sync',
      'console/server',
      'service/config',
      'service/certificates',
      'service/audit',
      'service/backup',
      'service/downloads',
    ],
    'it composes the service, and knows nothing of the command line',
  ],
  'service/host': [
    ['domain', 'store', 'api/generated', 'api/http', 'api/identity', 'service'],
    'it starts the service, and is started by main',
  ],
};

/** The only folders that may import a package, and why. */
const packages = {
  express: [['api/http', 'service/downloads'], 'operations know nothing of HTTP'],
  ssh2: [['gateway/ssh', 'sync/simulated/login-node'], 'SSH is theirs alone'],
  '@napi-rs/keyring': [['cli'], 'a session belongs to the person who signed in'],
  commander: [['cli'], 'the server has no command line of its own'],
  'better-sqlite3': [['store/engine/sqlite'], 'another database must be able to take its place'],
  pg: [['store/engine/postgres'], 'another database must be able to take its place'],
  kysely: [['store'], 'queries live in one folder'],
  'oidc-provider': [['api/identity'], 'the embedded issuer is a part of identity'],
  'acme-client': [['service/certificates'], 'certificates are its business alone'],
  '@kubernetes/client-node': [['sync/kubernetes'], 'only a driver speaks with API servers'],
  'node-pty': [['sync/simulated/login-node'], 'terminals exist on login nodes only'],
};

/** The rooms of store, each of which may import those before it. Migrations are the engine's; the types of the tables are all of theirs. */
const storeRooms = [
  'engine',
  'people',
  'organizations',
  'clusters',
  'access',
  'audit',
  'servers',
  'data-dir',
];

const storeRules = storeRooms.map((room, index) => ({
  name: `store/${room}-imports-no-room-after-it`,
  comment: 'what is about one thing is read without what rests on it',
  severity: 'error',
  from: { path: `^src/store/${room}/` },
  to: {
    path: '^src/store/',
    pathNot: `^src/store/(${[...storeRooms.slice(0, index + 1), 'migrations', 'generated'].join('|')})/`,
  },
}));

const folderRules = Object.entries(folders).map(([folder, [others, comment]]) => ({
  name: `${folder}-imports-${others.join('-and-') || 'nothing'}`,
  comment,
  severity: 'error',
  from: { path: `^src/${folder}/` },
  to: {
    path: '^src/',
    pathNot: `^src/(${[folder, ...others, ...(withoutShared.includes(folder) ? [] : [shared])].join('|')})/`,
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
    ...storeRules,
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
      comment: 'each aggregate maps its rows to a type of the domain, once, and others call its functions',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/store/' },
      to: {
        path: '^src/store/(engine/(queries|rows|dialect|writer)[.]ts$|generated/|migrations/)',
      },
    },
    {
      name: 'dialects-only-through-the-engine',
      comment: 'another database engine takes the place of SQLite there and nowhere else',
      severity: 'error',
      from: {
        path: '^src/',
        pathNot: '^src/store/engine/(postgres/|sqlite/|dialect[.]ts$|queries[.]ts$|engine[.]ts$)',
      },
      to: { path: '^src/store/engine/(postgres|sqlite)/' },
    },
    {
      name: 'the-engine-knows-no-subject',
      comment:
        'queries by subject are made with it; it knows the schema and its steps, and nothing of what they are about',
      severity: 'error',
      from: { path: '^src/store/engine/' },
      to: { path: '^src/store/', pathNot: '^src/store/(engine|migrations|generated)/' },
    },
    {
      name: 'only-main-and-its-commands-lie-loose',
      severity: 'error',
      from: { path: '^src/[^/]+$', pathNot: '^src/(main|host-commands)[.]ts$' },
      to: {},
    },
    {
      name: 'login-node-stands-for-another-machine',
      comment: 'it has no database of ours, and knows nothing of the sync loop',
      severity: 'error',
      from: { path: '^src/sync/simulated/login-node/' },
      to: { path: '^src/', pathNot: '^src/(domain|lib|sync/simulated/login-node)/' },
    },
    {
      name: 'the-server-imports-no-page',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/console/app/' },
      to: { path: '^src/console/app/' },
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
      comment: 'nothing imports it: it can go. (Entry files are named by a path, and not imported.)',
      severity: 'error',
      from: {
        orphan: true,
        path: '[.]tsx?$',
        pathNot: '^src/main[.]ts$|^src/console/app/theme[.]ts$|^src/store/migrations/|[.]d[.]ts$',
      },
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
      comment: 'types aside, which are gone when it runs, and the pages, which are bundled',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/console/app/' },
      to: { dependencyTypes: ['npm-dev'], dependencyTypesNot: ['type-only'] },
    },
    { name: 'imports-resolve', severity: 'error', from: {}, to: { couldNotResolve: true } },
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    doNotFollow: { path: 'node_modules' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default', 'types'],
    },
  },
};
