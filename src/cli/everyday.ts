/** The commands people use every day, in the order in which help lists them; each one's module is loaded on demand. */
import type { Noun, Verb } from './verb.ts';

export const everyday: Record<string, () => Promise<Noun | Verb>> = {
  ssh: async () => (await import('./everyday/ssh.ts')).ssh,
  'ssh-config': async () => (await import('./everyday/ssh-config.ts')).sshConfig,
  keys: async () => (await import('./everyday/keys.ts')).keys,
  wait: async () => (await import('./everyday/wait.ts')).wait,
  clusters: async () => (await import('./everyday/clusters.ts')).clusters,
  machines: async () => (await import('./everyday/machines.ts')).machines,
  storage: async () => (await import('./everyday/storage.ts')).storage,
  kubeconfig: async () => (await import('./everyday/kubeconfig.ts')).kubeconfig,
  shell: async () => (await import('./everyday/shell.ts')).shell,
  members: async () => (await import('./everyday/members.ts')).members,
  'slurm-config': async () => (await import('./everyday/slurm-config.ts')).slurmConfig,
};
