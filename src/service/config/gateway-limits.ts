/** The `gateway.limits` section of the configuration. What it leaves out is as `gateway/ssh/limits.ts` says. */
import { duration } from './duration.ts';

/** The gateway's own names, in its own units: milliseconds and numbers. */
export type GatewayLimitName =
  | 'loginGraceMs'
  | 'maxAuthAttempts'
  | 'unauthenticated'
  | 'unauthenticatedPerSource'
  | 'handshakesPerSource'
  | 'handshakes'
  | 'sessionsPerUser'
  | 'sessionsPerSource'
  | 'maxChannels'
  | 'idleMs'
  | 'recheckMs'
  | 'confirmGraceMs'
  | 'unconfirmedMs'
  | 'drainMs'
  | 'backoffAfter'
  | 'backoffMs'
  | 'backoffMaxMs'
  | 'rekeyBytes'
  | 'rekeyMs';

export type GatewayLimitsConfig = Partial<Record<GatewayLimitName, number>>;

const seconds = (minimum: number, maximum: number) => ({
  unit: 1000,
  ...duration('seconds', minimum, maximum),
});
const count = (maximum: number) => ({ type: 'integer', minimum: 1, maximum, unit: 1 });

/** Each setting: which limit it is, and its schema, in which `unit` is what one of it is worth. */
const settings: Record<string, { limit: GatewayLimitName; unit: number }> = {
  loginGraceSeconds: { limit: 'loginGraceMs', ...seconds(1, 600) },
  loginAttempts: { limit: 'maxAuthAttempts', ...count(100) },
  unauthenticated: { limit: 'unauthenticated', ...count(100_000) },
  unauthenticatedPerSource: { limit: 'unauthenticatedPerSource', ...count(100_000) },
  handshakesPerSource: { limit: 'handshakesPerSource', ...count(10_000) },
  handshakes: { limit: 'handshakes', ...count(10_000) },
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
  backoffSeconds: { limit: 'backoffMs', ...seconds(0, 3_600) },
  backoffMaxSeconds: { limit: 'backoffMaxMs', ...seconds(0, 3_600) },
  rekeyMebibytes: { limit: 'rekeyBytes', ...count(65_536), unit: 1024 ** 2 },
  rekeySeconds: { limit: 'rekeyMs', ...seconds(10, 604_800) },
};

export type RawGatewayLimits = Record<string, number | undefined>;

/** The JSON schema of the section. */
export const gatewayLimitsSchema = {
  type: 'object',
  additionalProperties: false,
  properties: Object.fromEntries(
    Object.entries(settings).map(([name, { limit: _, unit: __, ...schema }]) => [name, schema]),
  ),
};

/** The limits that the section gives, which fits the schema. */
export function readGatewayLimits(raw: RawGatewayLimits = {}): GatewayLimitsConfig {
  const limits: GatewayLimitsConfig = {};
  for (const [name, value] of Object.entries(raw)) {
    const setting = settings[name];
    if (setting && typeof value === 'number') limits[setting.limit] = Math.round(value * setting.unit);
  }
  return limits;
}
