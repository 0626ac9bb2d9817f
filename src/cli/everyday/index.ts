/** The commands people use every day, in the order in which help lists them; each one's module is loaded on demand. */
import type { Noun, Verb } from '../verb.ts';

export const everyday: Record<string, () => Promise<Noun | Verb>> = {
  ssh: async () => (await import('./ssh.ts')).ssh,
  'ssh-config': async () => (await import('./ssh-config.ts')).sshConfig,
  keys: async () => (await import('./keys.ts')).keys,
  wait: async () => (await import('./wait.ts')).wait,
  clusters: async () => (await import('./clusters.ts')).clusters,
  machines: async () => (await import('./clusters.ts')).machines,
  storage: async () => (await import('./clusters.ts')).storage,
  kubeconfig: async () => (await import('./kubeconfig.ts')).kubeconfig,
  shell: async () => (await import('./keys.ts')).shell,
  members: async () => (await import('./members.ts')).members,
  access: async () => (await import('./access.ts')).access,
  'slurm-config': async () => (await import('./slurm-config.ts')).slurmConfig,
};
