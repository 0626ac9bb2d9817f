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
import { NotFoundPage, SignedInPage, SignedOutPage } from './pages/alone.tsx';
import { KeysPage } from './pages/keys.tsx';
import { StartPage } from './pages/start.tsx';
import { auditSearch, ownSessionSearch, sessionSearch, textOf } from './trail.ts';

/** The search parameters of these names, as texts. Invalid ones are undefined, not left out: the router would keep them. */
function texts<Name extends string>(...names: Name[]) {
  return (search: Record<string, unknown>): { [One in Name]?: string } =>
    Object.fromEntries(names.map((name) => [name, textOf(search[name])])) as {
      [One in Name]?: string;
    };
}

/** Room for the IDs of a hundred people, separated by commas. */
const longestPeople = 4_000;

function peopleOf({ people }: Record<string, unknown>): { people?: string } {
  return typeof people === 'string' ? { people: people.slice(0, longestPeople) } : {};
}

const root = createRootRoute({ component: Outlet });
const frame = createRoute({
  getParentRoute: () => root,
  id: 'frame',
  component: Frame,
  validateSearch: texts('org', 'filter'),
  search: { middlewares: [retainSearchParams(['org'])] },
});

function page<const Path extends string, Search extends object>(
  path: Path,
  component: RouteComponent,
  validateSearch: (search: Record<string, unknown>) => Search,
) {
  return createRoute({ getParentRoute: () => frame, path, component, validateSearch });
}

const none = texts();

const AccessPage = lazy(() => import('./pages/access.tsx'), 'AccessPage');
const ClustersPage = lazy(() => import('./pages/clusters.tsx'), 'ClustersPage');
const ClusterPage = lazy(() => import('./pages/clusters.tsx'), 'ClusterPage');
const SecurityPage = lazy(() => import('./pages/security.tsx'), 'SecurityPage');
const SlurmPage = lazy(() => import('./pages/slurm.tsx'));
const ClusterPeoplePage = lazy(() => import('./pages/cluster-people.tsx'));
const MembersPage = lazy(() => import('./pages/members.tsx'));
const PersonPage = lazy(() => import('./pages/person.tsx'), 'PersonPage');
const MemberChangePage = lazy(() => import('./pages/person.tsx'), 'MemberChangePage');
const RequestsPage = lazy(() => import('./pages/requests.tsx'));
const GpusPage = lazy(() => import('./pages/gpus.tsx'));
const StoragePage = lazy(() => import('./pages/storage.tsx'));
const OperatorPage = lazy(() => import('./pages/operator.tsx'));
const OperatorMachinesPage = lazy(() => import('./pages/operator-machines.tsx'));
const OperatorPeoplePage = lazy(() => import('./pages/operator-people.tsx'));
const OperatorServicePage = lazy(() => import('./pages/operator-service.tsx'));
const ActiveSessionsPage = lazy(() => import('./pages/sessions.tsx'), 'ActiveSessionsPage');
const PastSessionsPage = lazy(() => import('./pages/sessions.tsx'), 'PastSessionsPage');
const MyPastSessionsPage = lazy(() => import('./pages/sessions.tsx'), 'MyPastSessionsPage');
const AuditPage = lazy(() => import('./pages/audit.tsx'));

const pages = [
  page('/', StartPage, none),
  page('/access', AccessPage, none),
  page('/keys', KeysPage, none),
  page('/clusters', ClustersPage, none),
  page('/clusters/$clusterId', ClusterPage, none),
  page('/clusters/$clusterId/slurm', SlurmPage, none),
  page('/clusters/$clusterId/people', ClusterPeoplePage, none),
  page('/gpus', GpusPage, none),
  page('/storage', StoragePage, none),
  page('/members', MembersPage, none),
  page('/members/$userId', PersonPage, none),
  page('/members/change', MemberChangePage, peopleOf),
  page('/requests', RequestsPage, none),
  page('/operator', OperatorPage, none),
  page('/operator/machines', OperatorMachinesPage, texts('cluster')),
  page('/operator/people', OperatorPeoplePage, texts('email')),
  page('/operator/service', OperatorServicePage, none),
  page('/who', ActiveSessionsPage, none),
  page('/past', PastSessionsPage, sessionSearch),
  page('/past/mine', MyPastSessionsPage, ownSessionSearch),
  page('/audit', AuditPage, auditSearch),
  page('/security', SecurityPage, none),
  page('/$', NotFoundPage, none),
] as const;

const signedOut = createRoute({
  getParentRoute: () => root,
  path: '/signed-out',
  component: SignedOutPage,
  validateSearch: texts('why', 'to'),
});

const signedIn = createRoute({
  getParentRoute: () => root,
  path: '/signed-in',
  component: SignedInPage,
});

export const router = createRouter({
  routeTree: root.addChildren([frame.addChildren(pages), signedOut, signedIn]),
  defaultPreload: false,
  scrollRestoration: false,
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
