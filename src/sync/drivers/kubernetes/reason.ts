import { KubernetesError, shortened } from '../../../domain/kubernetes-status.ts';

/** Why something did not come about, as a message; fetch itself reports only that it failed. */
export function reasonOf(error: unknown): string {
  if (error instanceof KubernetesError) return shortened(error.message);
  if (!(error instanceof Error)) return shortened(String(error));
  if (error.name === 'TimeoutError') return 'it does not answer in time';
  const { cause } = error;
  return shortened(cause instanceof Error && cause.message !== '' ? cause.message : error.message);
}
