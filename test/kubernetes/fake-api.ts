/**
 * An API server that is not one: TLS and HTTP/2 as the real one speaks them, RBAC and its own bindings, and answers
 * that were recorded. What it does not know it refuses, so that nothing is tested against made-up behaviour.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { gzipSync } from 'node:zlib';
import { stringify } from 'yaml';
import { createAuthority, type TestAuthority } from '../support/certificate.ts';
import { type Account, type Ask, accounts, may } from './accounts.ts';
import { type BindingObject, type Bindings, createBindings, type World } from './bindings.ts';
import { type Answer, recorded } from './recorded.ts';
import { forbidden, notFound } from './statuses.ts';
import { type Changes, createChanges } from './watches.ts';

export interface Asked {
  method: string;
  /** Without the query. */
  path: string;
  query: URLSearchParams;
  user: string | undefined;
  headers: Record<string, string | string[] | undefined>;
}

/** A kubeconfig of an account there. `ca`: the authority that it trusts. */
export function kubeconfigFor({ url, authority }: FakeApi, token = 'andromeda', ca = authority.ca): string {
  const data = Buffer.from(ca).toString('base64');
  const cluster = { server: url, 'certificate-authority-data': data, 'tls-server-name': 'localhost' };
  return stringify({
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'x' },
    clusters: [{ name: 'c', cluster }],
    users: [{ name: 'u', user: { token } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
  });
}

export interface FakeApi extends AsyncDisposable {
  url: string;
  authority: TestAuthority;
  world: World;
  bindings: Bindings;
  /** What watches see. */
  changes: Changes;
  accounts: Record<string, Account>;
  /** What a list of pods shows, page by page. */
  pods: object[];
  /** Who a token is of that is no account's: what an API server's OIDC flags are for. */
  signIn: ((token: string) => Promise<Account | undefined>) | undefined;
  /** Recordings in place of what is asked for, by path: nodes, storage, readiness. */
  says: Record<string, string>;
  /** Asked before anything else; what it returns is the answer. `cut`: the connection ends. */
  fault: ((asked: Asked) => Answer | 'cut' | Promise<Answer | 'cut' | undefined> | undefined) | undefined;
  /** Everything asked since the last time this was emptied. */
  asked: Asked[];
  connections: number;
  /** Goes away, and comes back under the same address. */
  stop(): Promise<void>;
  start(): Promise<void>;
}

export async function startFakeApi(options: { latencyMs?: number } = {}): Promise<FakeApi> {
  const authority = createAuthority();
  const changes = createChanges();
  const world: World = {
    namespaces: new Namespaces(changes),
    clusterRoles: new Set(['view', 'edit', 'admin', 'cluster-admin', 'gpu-quota-reader']),
  };
  const sockets = new Set<Socket>();
  let server: ReturnType<typeof createSecureServer> | undefined;
  let port = 0;

  async function serve(request: Request, response: Response): Promise<void> {
    const sent = await bodyOf(request);
    const url = new URL(request.url ?? '/', 'https://x');
    const account = await accountOf(request, api);
    const method = request.method ?? '';
    const { headers } = request;
    const user = account === 'unknown' ? undefined : account?.user;
    const asked: Asked = { method, path: url.pathname, query: url.searchParams, user, headers };
    api.asked.push(asked);
    if (options.latencyMs) await new Promise((done) => setTimeout(done, options.latencyMs));
    const fault = await api.fault?.(asked);
    if (fault === undefined && asked.query.has('watch')) {
      const refused = refusalOfWatch(asked, account);
      if (!refused) return watch(api, asked, response);
      response.writeHead(refused.status, refused.headers);
      return void response.end(JSON.stringify(refused.body));
    }
    const answer = fault ?? answerOf(api, asked, account, sent);
    if (answer === 'cut') return void request.socket.destroy();
    const text = typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body);
    const isLong = text.length > 128 * 1024 && String(headers['accept-encoding']).includes('gzip');
    response.writeHead(answer.status, {
      ...answer.headers,
      ...(isLong ? { 'content-encoding': 'gzip' } : {}),
    });
    response.end(isLong ? gzipSync(text, { level: 1 }) : text);
  }

  const api: FakeApi = {
    url: '',
    authority,
    world,
    bindings: createBindings(world, changes),
    changes,
    accounts: { ...accounts },
    pods: [],
    signIn: undefined,
    says: {
      '/version': 'version-and-health/version',
      '/readyz': 'version-and-health/readyz',
      '/api/v1/nodes': 'nodes/list',
      '/apis/storage.k8s.io/v1/storageclasses': 'storageclasses/list',
    },
    fault: undefined,
    asked: [],
    connections: 0,
    async start() {
      const { cert, key } = authority.issue('server');
      const tls = { cert, key, ca: authority.ca, requestCert: true, rejectUnauthorized: false };
      const next = createSecureServer({ ...tls, allowHTTP1: true }, (request, response) => {
        serve(request as Request, response as Response).catch((error) => {
          console.error('fake API server:', error);
          response.writeHead(501);
          response.end(String(error));
        });
      });
      next.on('secureConnection', (socket: Socket) => {
        api.connections += 1;
        sockets.add(socket);
        socket.on('close', () => sockets.delete(socket));
      });
      await new Promise<void>((resolve, reject) => {
        next.on('error', reject);
        next.listen(port, '127.0.0.1', resolve);
      });
      ({ port } = next.address() as AddressInfo);
      api.url = `https://127.0.0.1:${port}`;
      server = next;
    },
    async stop() {
      const closed = new Promise((resolve) => server?.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
    [Symbol.asyncDispose]: () => api.stop(),
  };
  await api.start();
  return api;
}

/** The namespaces, each with whether it takes something new; a change of them is seen by who watches. */
class Namespaces extends Map<string, boolean> {
  readonly #changes: Changes;

  constructor(changes: Changes) {
    super();
    this.#changes = changes;
    for (const name of ['default', 'team-a', 'team-b']) this.set(name, true);
  }

  override set(name: string, isActive: boolean): this {
    const before = this.has(name) ? namespace(name, this.get(name) === true) : undefined;
    super.set(name, isActive);
    this.#changes?.next(() => ({ resource: 'namespaces', before, after: namespace(name, isActive) }));
    return this;
  }

  override delete(name: string): boolean {
    const before = namespace(name, false);
    this.#changes.next(() => ({ resource: 'namespaces', before, after: undefined }));
    return super.delete(name);
  }
}

function refusalOfWatch(asked: Asked, account: Account | 'unknown' | undefined): Answer | undefined {
  if (account === 'unknown') return recorded('errors/wrong-token-401');
  if (!account) return recorded('errors/no-token-403');
  const ask = askOf(asked.method, asked.path, undefined);
  if (!ask) throw new Error(`not faked: a watch of ${asked.path}`);
  const watching = { ...ask, verb: 'watch' };
  return may(account, watching) ? undefined : forbidden(watching, account.user);
}

async function watch(api: FakeApi, { path, query }: Asked, response: Response): Promise<void> {
  const over = new AbortController();
  response.on('close', () => over.abort());
  response.writeHead(200, { 'content-type': 'application/json' });
  response.flushHeaders?.();
  const resource = path.split('/').at(-1) ?? '';
  const about = { resource, query, labels: labelsOf(query), signal: over.signal };
  await api.changes.watch(about, (line) => void response.write(line));
  response.end();
}

type Request = IncomingMessage | Http2ServerRequest;
type Response = ServerResponse & Http2ServerResponse;
// biome-ignore lint/suspicious/noExplicitAny: whatever was sent
type Sent = any;

async function bodyOf(request: Request): Promise<Sent> {
  let text = '';
  for await (const chunk of request) text += chunk;
  return text === '' ? undefined : JSON.parse(text);
}

/** By token, or by client certificate; `unknown` is a token that is nobody's. */
async function accountOf(request: Request, api: FakeApi): Promise<Account | 'unknown' | undefined> {
  const token = /^Bearer (.+)$/.exec(String(request.headers['authorization'] ?? ''))?.[1]?.trim();
  if (token !== undefined) return api.accounts[token] ?? (await api.signIn?.(token)) ?? 'unknown';
  const socket = ('stream' in request ? request.stream.session?.socket : request.socket) as
    | TLSSocket
    | undefined;
  const { subject } = socket?.getPeerCertificate?.() ?? {};
  return socket?.authorized && subject ? api.accounts[String(subject.CN)] : undefined;
}

function answerOf(api: FakeApi, asked: Asked, account: Account | 'unknown' | undefined, sent: Sent): Answer {
  const { method, path, query } = asked;
  if (account === 'unknown') return recorded('errors/wrong-token-401');
  const fixed = api.says[path];
  if (path === '/readyz' || path === '/version') return recorded(fixed ?? '');
  if (!account) return recorded('errors/no-token-403');
  if (path === '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews') return review(account, sent);
  if (path === '/apis/authentication.k8s.io/v1/selfsubjectreviews') return whoAmI(account);
  const ask = askOf(method, path, sent);
  if (!ask) throw new Error(`not faked: ${method} ${path}`);
  if (!may(account, ask)) return forbidden(ask, account.user);
  if (fixed) return recorded(fixed);
  const { resource } = ask;
  if (ask.group === 'ceph.rook.io') return recorded('rook/list-without-rook-404');
  if (resource === 'pods' && ask.verb === 'list') return pods(api, query);
  if (resource === 'namespaces' && method === 'GET') return namespaces(api);
  if (resource === 'clusterroles' && method === 'GET') return clusterRole(api.world, ask);
  if (!resource.endsWith('rolebindings')) throw new Error(`not faked: ${method} ${path}`);
  const { bindings } = api;
  switch (method) {
    case 'GET':
      return ask.verb === 'get' ? bindings.get(ask) : bindings.list(ask, labelsOf(query));
    case 'POST':
      return bindings.create(ask, account, sent, query.get('dryRun') === 'All');
    case 'PATCH':
      return bindings.apply(ask, account, sent, query.get('force') === 'true');
    case 'DELETE':
      return bindings.remove(ask, sent?.preconditions ?? {});
    default:
      throw new Error(`not faked: ${method} ${path}`);
  }
}

function askOf(method: string, path: string, sent: Sent): Ask | undefined {
  const [, group = '', namespace, resource, name] =
    /^\/(?:api|apis\/([^/]+))\/v1(?:\/namespaces\/([^/]+)(?=\/))?\/([a-z]+)(?:\/([^/]+))?$/.exec(path) ?? [];
  if (resource === undefined) return undefined;
  const verbs: Record<string, string> = { POST: 'create', PATCH: 'patch', DELETE: 'delete' };
  const verb = method === 'GET' ? (name === undefined ? 'list' : 'get') : verbs[method];
  const named =
    name === undefined ? (sent as BindingObject | undefined)?.metadata?.name : decodeURIComponent(name);
  return verb === undefined ? undefined : { verb, group, resource, name: named, namespace };
}

function labelsOf(query: URLSearchParams): Record<string, string> {
  const pairs = (query.get('labelSelector') ?? '').split(',').filter((pair) => pair !== '');
  return Object.fromEntries(pairs.map((pair) => pair.split('=')));
}

/** By limit and continue, without those that have ended, where that is asked for. */
function pods(api: FakeApi, query: URLSearchParams): Answer {
  const hidden = [...(query.get('fieldSelector') ?? '').matchAll(/status\.phase!=(\w+)/g)].map(
    ([, one]) => one,
  );
  const shown = api.pods.filter((pod) => {
    const { status } = pod as { status?: { phase?: string } };
    return !hidden.includes(status?.phase);
  });
  const from = Number(query.get('continue') ?? 0);
  const to = from + Number(query.get('limit') ?? shown.length);
  const rest = to < shown.length ? { continue: String(to), remainingItemCount: shown.length - to } : {};
  const metadata = { resourceVersion: String(api.changes.version), ...rest };
  const body = { kind: 'PodList', apiVersion: 'v1', metadata, items: shown.slice(from, to) };
  return { status: 200, headers: { 'content-type': 'application/json' }, body };
}

function namespaces(api: FakeApi): Answer {
  const list = recorded('namespaces/list') as Answer & { body: object };
  const items = [...api.world.namespaces].map(([name, isActive]) => namespace(name, isActive));
  const metadata = { resourceVersion: String(api.changes.version) };
  return { ...list, body: { ...list.body, metadata, items } };
}

function namespace(name: string, isActive: boolean) {
  return {
    metadata: { name, labels: { 'kubernetes.io/metadata.name': name } },
    spec: { finalizers: ['kubernetes'] },
    status: { phase: isActive ? 'Active' : 'Terminating' },
  };
}

function clusterRole({ clusterRoles }: World, ask: Ask): Answer {
  if (!clusterRoles.has(ask.name ?? '')) return notFound(ask);
  const role = recorded('clusterroles/get-custom') as Answer & { body: { metadata: object } };
  return { ...role, body: { ...role.body, metadata: { ...role.body.metadata, name: ask.name } } };
}

function whoAmI({ user: username }: Account): Answer {
  const answer = recorded('selfsubjectaccessreviews/self-subject-review');
  const body = structuredClone(answer.body) as { status: { userInfo: { username: string } } };
  body.status.userInfo.username = username;
  return { ...answer, body };
}

function review(account: Account, { spec }: Sent): Answer {
  const { verb, group = '', resource, name, namespace } = spec.resourceAttributes;
  const allowed = may(account, { verb, group, resource, name, namespace });
  const { status, headers, body } = recorded('selfsubjectaccessreviews/denied');
  // As the server repeats it: without what is empty.
  const resourceAttributes = { ...spec.resourceAttributes };
  if (group === '') delete resourceAttributes.group;
  return {
    status,
    headers,
    body: { ...(body as object), spec: { resourceAttributes }, status: { allowed } },
  };
}
