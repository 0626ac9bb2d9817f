/** The `gateway.limits` section of the configuration. What it leaves out is as `gateway/ssh/limits.ts` says. */
import { duration, integer, type Schema } from './schema.ts';

const seconds = (minimum: number, maximum: number) => ({
  unit: 1000,
  ...duration('seconds', minimum, maximum),
});
const count = (maximum: number) => ({ unit: 1, ...integer(1, maximum) });

/**
 * Each setting: which limit it is, by the gateway's own name in its own unit (milliseconds or a number), and its schema, in which `unit`
 * is what one of it is worth.
 */
const settings = {
  loginGraceSeconds: { limit: 'loginGraceMs', ...seconds(1, 600) },
  // 0: a login is refused at once.
  signInWaitSeconds: { limit: 'signInWaitMs', ...seconds(0, 600) },
  loginAttempts: { limit: 'maxAuthAttempts', ...count(100) },
  unauthenticated: { limit: 'unauthenticated', ...count(100_000) },
  unauthenticatedPerSource: { limit: 'unauthenticatedPerSource', ...count(100_000) },
  handshakesPerSource: { limit: 'handshakesPerSource', ...count(10_000) },
  sessionsPerUser: { limit: 'sessionsPerUser', ...count(100_000) },
  sessionsPerSource: { limit: 'sessionsPerSource', ...count(100_000) },
  channelsPerConnection: { limit: 'maxChannels', ...count(10_000) },
  // Off: 0.
  idleSeconds: { limit: 'idleMs', ...seconds(0, 31_536_000) },
  // Notices come at once; this is the net under them, so it stays short.
  recheckSeconds: { limit: 'recheckMs', ...seconds(1, 60) },
  confirmGraceSeconds: { limit: 'confirmGraceMs', ...seconds(0, 86_400) },
  unconfirmedSeconds: { limit: 'unconfirmedMs', ...seconds(1, 86_400) },
  drainSeconds: { limit: 'drainMs', ...seconds(0, 86_400) },
  backoffAfterFailures: { limit: 'backoffAfter', ...count(1_000_000) },
} as const satisfies Record<string, { limit: string; unit: number }>;

type GatewayLimitsConfig = Partial<Record<(typeof settings)[keyof typeof settings]['limit'], number>>;

export const gatewayLimitsSchema: Schema<{ [Name in keyof typeof settings]?: number }> = {
  type: 'object',
  additionalProperties: false,
  properties: Object.fromEntries(
    Object.entries(settings).map(([name, { limit: _, unit: __, ...schema }]) => [name, schema]),
  ),
};

export function readGatewayLimits(
  raw: { [Name in keyof typeof settings]?: number } = {},
): GatewayLimitsConfig {
  const limits: GatewayLimitsConfig = {};
  for (const [name, value] of Object.entries(raw)) {
    const { limit, unit } = settings[name as keyof typeof settings];
    limits[limit] = Math.round(value * unit);
  }
  return limits;
}
