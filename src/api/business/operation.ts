/** The dependencies and types of Business operations, from openapi/business.yaml, and a helper for operations that are one command. */
import type { SshSession } from '../../domain/access/ssh-session.ts';
import type { AuditKey, SignedHead } from '../../domain/audit/audit.ts';
import type { Cluster, Side } from '../../domain/clusters/cluster.ts';
import type { HostRules } from '../../domain/clusters/lab-paths.ts';
import type { BackupState, Problem, ServiceKey, SidePasses } from '../../domain/installation-state.ts';
import type { HeldKeys, KeyKind } from '../../domain/key-rotation.ts';
import type { KubernetesCheck } from '../../domain/kubernetes/status.ts';
import type { OperationOf, OperationType, ReplyOf, Request } from '../../domain/operation.ts';
import type { GroupSettings } from '../../domain/organizations/group-rules.ts';
import type { ClusterSurvey } from '../../domain/slurm/survey-person.ts';
import { type Command, runCommand } from '../../store/audit/commands.ts';
import type { Store } from '../../store/engine/index.ts';
import type { operations } from '../generated/business.ts';

interface GatewayView {
  hostname: string;
  port: number;
  /** Host keys shown to people, `ssh-ed25519 AAAA…`: the used one, then other valid ones. */
  hostKeys: readonly string[];
  /** The gateway's keys for login nodes, in the same order. */
  publicKeys: readonly string[];
  readonly fault: string | undefined;
  sessions(): Promise<readonly SshSession[]>;
  /** Ends a session of this server and shows the person the text; false if there is none. */
  close(sessionId: string, text: string): boolean;
}

export interface InstallationView {
  keys(): { kind: KeyKind; held: HeldKeys<ServiceKey> }[];
  backup(): BackupState;
  /** Faults on the service's host; faults of clusters are in the database. */
  problems(): Problem[];
  passesOf(clusterId: string, side: Side): SidePasses | undefined;
}

export interface BusinessDeps {
  store: Store;
  gateway: GatewayView;
  offersKubernetesLogin: boolean;
  installation: InstallationView;
  /** Signs the audit trail, and erases people from it. */
  audit: {
    publicKeys(): readonly string[];
    sign(): Promise<SignedHead | undefined>;
    markIdentity: AuditKey['markIdentity'];
    eraseNames(): void;
  };
  /** Checks and hashes a person's new password for the embedded issuer; undefined with an external issuer. */
  hashPassword:
    | ((password: string, person: { email: string; displayName: string }) => Promise<string>)
    | undefined;
  /** The link for setting a password at the embedded issuer, the same for the same command; undefined with an external one. */
  passwordLink: ((userId: string, command: string) => { token: string; url: string }) | undefined;
  /** Asks a cluster which rights the service has there. Throws `invalid_state` for a cluster without Kubernetes. */
  checkCluster(cluster: Cluster): Promise<KubernetesCheck>;
  /** Asks a cluster's hosts what is there. Throws `invalid_state` for a cluster without Slurm hosts. */
  surveyCluster(cluster: Cluster, names: readonly string[]): Promise<ClusterSurvey>;
  groups: GroupSettings | undefined;
  hostRules: HostRules;
}

/** An operation by its name in the document, which determines the types of its request and reply. */
export type Operation<Id extends keyof operations> = OperationOf<
  operations[Id] & OperationType,
  BusinessDeps
>;
export type BusinessRequest<Id extends keyof operations> = Request<operations[Id] & OperationType>;
export type BusinessReply<Id extends keyof operations> = ReplyOf<operations[Id] & OperationType>;

/** A command without its name: the operation's name is used. */
export type CommandBody<T> = Omit<Command<T>, 'operation'>;

/** Makes an operation of one command, which is derived from the request. */
export function writes<Id extends keyof operations>(
  operation: Id,
  bodyOf: (deps: BusinessDeps, request: BusinessRequest<Id>) => Awaitable<CommandBody<BusinessReply<Id>>>,
): Operation<Id> {
  const run = async (deps: BusinessDeps, request: BusinessRequest<Id>) =>
    runCommand(deps.store, request, { operation, ...(await bodyOf(deps, request)) });
  return run as Operation<Id>;
}

export type Awaitable<T> = T | Promise<T>;
