/** What every operation of the Platform API is given and answers, typed by openapi/platform.yaml. */
import type { OperationOf, OperationType, ReplyOf, Request } from '../../domain/operation.ts';
import type { Store } from '../../store/engine/index.ts';
import type { operations } from '../generated/platform.ts';

interface GatewayAddress {
  hostname: string;
  port: number;
  /** The keys that it may show: the one in use first, and while that gives way to another, the other. */
  hostKeys(): readonly [HostKey, ...HostKey[]];
  readonly fault?: string | undefined;
}

interface HostKey {
  /** `ssh-ed25519 AAAA…` */
  publicKey: string;
  fingerprint: string;
}

export interface PlatformDeps {
  store: Store;
  gateway: GatewayAddress;
  /** What discovery tells (RFC 9728). */
  signIn: {
    platformUrl: string;
    businessUrl: string;
    issuer: string;
    audiences: readonly string[];
    cliClientId: string;
    /** Scopes to ask for where the issuer does not know the ones made from audiences. */
    scopes?: readonly string[] | undefined;
  };
  /** How people sign in to the clusters' Kubernetes APIs; undefined where that is not offered. */
  kubernetesLogin: { clientId: string; usernameClaim: string; issuerAuthority?: string } | undefined;
}

/** One operation, by its name in the document: what it is given and answers follows from that. */
export type Operation<Id extends keyof operations> = OperationOf<
  operations[Id] & OperationType,
  PlatformDeps
>;
export type PlatformRequest<Id extends keyof operations> = Request<operations[Id] & OperationType>;
export type PlatformReply<Id extends keyof operations> = ReplyOf<operations[Id] & OperationType>;
