/** Every page and its address. */
import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
  retainSearchParams,
} from '@tanstack/react-router';
import { Frame } from './frame.tsx';
import { auditSearch } from './operator.ts';
import { AccessPage } from './pages/access.tsx';
import { ClusterPage } from './pages/cluster.tsx';
import { ClustersPage } from './pages/clusters.tsx';
import { KeysPage } from './pages/keys.tsx';
import { LostPage } from './pages/lost.tsx';
import { SecurityPage } from './pages/security.tsx';
import { SignedOutPage } from './pages/signed-out.tsx';
import { StartPage } from './pages/start.tsx';
import { textOf } from './search.ts';
import { sessionSearch } from './sessions.ts';

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
const start = createRoute({ getParentRoute: () => frame, path: '/', component: StartPage });
const access = createRoute({
  getParentRoute: () => frame,
  path: '/access',
  component: AccessPage,
});
const keys = createRoute({ getParentRoute: () => frame, path: '/keys', component: KeysPage });
const clusters = createRoute({ getParentRoute: () => frame, path: '/clusters', component: ClustersPage });
const cluster = createRoute({
  getParentRoute: () => frame,
  path: '/clusters/$clusterId',
  component: ClusterPage,
  validateSearch: texts('filter'),
});
const slurm = createRoute({
  getParentRoute: () => frame,
  path: '/clusters/$clusterId/slurm',
  component: lazyRouteComponent(() => import('./pages/slurm.tsx'), 'SlurmPage'),
});
const memberList = createRoute({
  getParentRoute: () => frame,
  path: '/members',
  component: lazyRouteComponent(() => import('./pages/members.tsx'), 'MembersPage'),
  validateSearch: texts('filter'),
});
const person = createRoute({
  getParentRoute: () => frame,
  path: '/members/$userId',
  component: lazyRouteComponent(() => import('./pages/person.tsx'), 'PersonPage'),
});
const memberChange = createRoute({
  getParentRoute: () => frame,
  path: '/members/change',
  component: lazyRouteComponent(() => import('./pages/member-change.tsx'), 'MemberChangePage'),
  validateSearch: ({ people }: Record<string, unknown>): { people?: string } => ({
    ...(typeof people === 'string' && { people: people.slice(0, longestPeople) }),
  }),
});
const clusterPeople = createRoute({
  getParentRoute: () => frame,
  path: '/clusters/$clusterId/people',
  component: lazyRouteComponent(() => import('./pages/cluster-people.tsx'), 'ClusterPeoplePage'),
  validateSearch: texts('filter'),
});
const requests = createRoute({
  getParentRoute: () => frame,
  path: '/requests',
  component: lazyRouteComponent(() => import('./pages/requests.tsx'), 'RequestsPage'),
});
const operator = createRoute({
  getParentRoute: () => frame,
  path: '/operator',
  component: lazyRouteComponent(() => import('./pages/operator.tsx'), 'OperatorPage'),
});
const operatorMachines = createRoute({
  getParentRoute: () => frame,
  path: '/operator/machines',
  component: lazyRouteComponent(() => import('./pages/operator-machines.tsx'), 'OperatorMachinesPage'),
  validateSearch: texts('cluster'),
});
const operatorPeople = createRoute({
  getParentRoute: () => frame,
  path: '/operator/people',
  component: lazyRouteComponent(() => import('./pages/operator-people.tsx'), 'OperatorPeoplePage'),
  validateSearch: texts('email'),
});
const operatorLab = createRoute({
  getParentRoute: () => frame,
  path: '/operator/lab',
  component: lazyRouteComponent(() => import('./pages/operator-lab.tsx'), 'OperatorLabPage'),
});
const operatorService = createRoute({
  getParentRoute: () => frame,
  path: '/operator/service',
  component: lazyRouteComponent(() => import('./pages/operator-service.tsx'), 'OperatorServicePage'),
});
const openSessions = createRoute({
  getParentRoute: () => frame,
  path: '/who',
  component: lazyRouteComponent(() => import('./pages/who-is-on.tsx'), 'WhoIsOnPage'),
  validateSearch: texts('filter'),
});
const pastSessions = createRoute({
  getParentRoute: () => frame,
  path: '/past',
  component: lazyRouteComponent(() => import('./pages/past-sessions.tsx'), 'PastSessionsPage'),
  validateSearch: sessionSearch,
});
const myPastSessions = createRoute({
  getParentRoute: () => frame,
  path: '/past/mine',
  component: lazyRouteComponent(() => import('./pages/past-sessions.tsx'), 'MyPastSessionsPage'),
  validateSearch: sessionSearch,
});
const audit = createRoute({
  getParentRoute: () => frame,
  path: '/audit',
  component: lazyRouteComponent(() => import('./pages/audit.tsx'), 'AuditPage'),
  validateSearch: auditSearch,
});
const security = createRoute({ getParentRoute: () => frame, path: '/security', component: SecurityPage });
const signedOut = createRoute({
  getParentRoute: () => root,
  path: '/signed-out',
  component: SignedOutPage,
  validateSearch: texts('why', 'to'),
});

export const router = createRouter({
  routeTree: root.addChildren([
    frame.addChildren([
      start,
      access,
      keys,
      clusters,
      cluster,
      slurm,
      memberList,
      person,
      memberChange,
      clusterPeople,
      requests,
      operator,
      operatorMachines,
      operatorPeople,
      operatorLab,
      operatorService,
      openSessions,
      pastSessions,
      myPastSessions,
      audit,
      security,
    ]),
    signedOut,
  ]),
  defaultPreload: false,
  scrollRestoration: false,
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
