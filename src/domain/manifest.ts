/** What a driver is asked to make true, and what it reports back. Every kind of cluster speaks in these. */

/** An access list as Platform accepted it: names frozen, numbers allocated. */
export interface Manifest {
  clusterId: string;
  generation: number;
  /** The cluster's desired configuration version that this list goes with. */
  desiredGeneration: number;
  accounts: readonly ManifestAccount[];
}

export interface ManifestAccount {
  userId: string;
  username: string;
  uid: number;
  gid: number;
  home: string;
  shell: string;
  loginState: 'ready' | 'waiting_for_key';
  keySetGeneration: number;
  keyFingerprints: readonly string[];
}

export interface LoginNodeReport {
  name: string;
  host: string;
  port: number;
  /** `ssh-ed25519 AAAA…`: the gateway connects to nothing that shows another key. */
  hostKey: string;
  up: boolean;
}

/** What a cluster says of itself, all of it, each time it is asked. */
export interface Report {
  /** The manifest that is in force there, 0 before the first. */
  manifestGeneration: number;
  desiredGeneration: number;
  controlPlaneReady: boolean;
  computeNodes: number;
  loginNodes: readonly LoginNodeReport[];
  accounts: readonly AccountReport[];
  /** In words, what stands in the way of the manifest and must be mended by a person; null when nothing does. */
  failure: string | null;
}

export type AccountReport = Pick<
  ManifestAccount,
  'userId' | 'shell' | 'loginState' | 'keySetGeneration' | 'keyFingerprints'
>;
