/** Every page and its address. */
import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent as lazy,
  Outlet,
  type RouteComponent,
  retainSearchParams,
} from '@tanstack/react-router';
import { Frame } from './frame.tsx';
import { AccessPage } from './pages/access.tsx';
import { ClusterPage } from './pages/cluster.tsx';
import { ClustersPage } from './pages/clusters.tsx';
import { KeysPage } from './pages/keys.tsx';
import { LostPage } from './pages/lost.tsx';
import { SecurityPage } from './pages/security.tsx';
import { SignedOutPage } from './pages/signed-out.tsx';
import { StartPage } from './pages/start.tsx';
import { textOf } from './search.ts';
import { auditSearch, ownSessionSearch, sessionSearch } from './trail.ts';

/** The search parameters of these names, as texts. What is none is undefined, not left out: the router would keep it as it came. */
function texts<Name extends string>(...names: Name[]) {
  return (search: Record<string, unknown>): { [One in Name]?: string } =>
    Object.fromEntries(names.map((name) => [name, textOf(search[name])])) as {
      [One in Name]?: string;
    };
}

/** The IDs of a hundred people, with commas between them. */
const longestPeople = 4_000;

const root = createRootRoute({ component: Outlet, notFoundComponent: LostPage });
const frame = createRoute({
  getParentRoute: () => root,
  id: 'frame',
  component: Frame,
  validateSearch: texts('org'),
  search: { middlewares: [retainSearchParams(['org'])] },
});
/** A page in the frame. */
function page<const Path extends string, Search extends object>(
  path: Path,
  component: RouteComponent,
  validateSearch: (search: Record<string, unknown>) => Search,
) {
  return createRoute({ getParentRoute: () => frame, path, component, validateSearch });
}

const filter = texts('filter');
const none = texts();

const pages = [
  page('/', StartPage, none),
  page('/access', AccessPage, none),
  page('/keys', KeysPage, none),
  page('/clusters', ClustersPage, none),
  page('/clusters/$clusterId', ClusterPage, filter),
  page(
    '/clusters/$clusterId/slurm',
    lazy(() => import('./pages/slurm.tsx'), 'SlurmPage'),
    none,
  ),
  page(
    '/clusters/$clusterId/people',
    lazy(() => import('./pages/cluster-people.tsx'), 'ClusterPeoplePage'),
    filter,
  ),
  page(
    '/members',
    lazy(() => import('./pages/members.tsx'), 'MembersPage'),
    filter,
  ),
  page(
    '/members/$userId',
    lazy(() => import('./pages/person.tsx'), 'PersonPage'),
    none,
  ),
  page(
    '/members/change',
    lazy(() => import('./pages/member-change.tsx'), 'MemberChangePage'),
    ({ people }): { people?: string } =>
      typeof people === 'string' ? { people: people.slice(0, longestPeople) } : {},
  ),
  page(
    '/requests',
    lazy(() => import('./pages/requests.tsx'), 'RequestsPage'),
    none,
  ),
  page(
    '/operator',
    lazy(() => import('./pages/operator.tsx'), 'OperatorPage'),
    none,
  ),
  page(
    '/operator/machines',
    lazy(() => import('./pages/operator-machines.tsx'), 'OperatorMachinesPage'),
    texts('cluster'),
  ),
  page(
    '/operator/people',
    lazy(() => import('./pages/operator-people.tsx'), 'OperatorPeoplePage'),
    texts('email'),
  ),
  page(
    '/operator/lab',
    lazy(() => import('./pages/operator-lab.tsx'), 'OperatorLabPage'),
    none,
  ),
  page(
    '/operator/service',
    lazy(() => import('./pages/operator-service.tsx'), 'OperatorServicePage'),
    none,
  ),
  page(
    '/who',
    lazy(() => import('./pages/who-is-on.tsx'), 'WhoIsOnPage'),
    filter,
  ),
  page(
    '/past',
    lazy(() => import('./pages/past-sessions.tsx'), 'PastSessionsPage'),
    sessionSearch,
  ),
  page(
    '/past/mine',
    lazy(() => import('./pages/past-sessions.tsx'), 'MyPastSessionsPage'),
    ownSessionSearch,
  ),
  page(
    '/audit',
    lazy(() => import('./pages/audit.tsx'), 'AuditPage'),
    auditSearch,
  ),
  page('/security', SecurityPage, none),
] as const;

const signedOut = createRoute({
  getParentRoute: () => root,
  path: '/signed-out',
  component: SignedOutPage,
  validateSearch: texts('why', 'to'),
});

export const router = createRouter({
  routeTree: root.addChildren([frame.addChildren(pages), signedOut]),
  defaultPreload: false,
  scrollRestoration: false,
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
