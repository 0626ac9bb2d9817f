/** A part of the composition root: a trace for each decision about a login at the gateway. */
import type { Authorize } from '../../../gateway/ssh/decision.ts';
import { failureOf, type Tracer, within } from '../../../lib/trace.ts';

/** Decides as before; looks at open sessions, of which there are many, have no traces. */
export function traceLogins(authorize: Authorize, tracer: Tracer | undefined): Authorize {
  if (!tracer) return authorize;
  return async (attempt, openOn) => {
    if (openOn) return authorize(attempt, openOn);
    const span = tracer.begin('gateway login', { kind: 'server' });
    try {
      const decision = await within(span, () => authorize(attempt));
      const subject = decision.allowed ? decision.route : decision.subject;
      span.set({
        'andromeda.allowed': decision.allowed,
        'andromeda.reason': decision.allowed ? undefined : decision.reason,
        'andromeda.cluster_id': subject?.clusterId,
        'andromeda.user_id': subject?.userId,
        'andromeda.key_id': subject?.keyId,
      });
      span.end();
      return decision;
    } catch (error) {
      span.end(failureOf(error));
      throw error;
    }
  };
}
