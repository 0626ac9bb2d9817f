/** The `gateway.limits` section of the configuration. Its defaults are in `gateway/ssh/limits.ts`. */
import { duration, integer, section, type Value } from './schema.ts';

const seconds = (minimum: number, maximum: number) => duration('seconds', minimum, maximum);
const count = (maximum: number) => integer(1, maximum);

export const gatewayLimitsSchema = section({
  loginGraceSeconds: seconds(1, 600),
  // 0: refuses a login without a sign-in at once.
  signInWaitSeconds: seconds(0, 600),
  loginAttempts: count(100),
  unauthenticated: count(100_000),
  unauthenticatedPerSource: count(100_000),
  handshakesPerSource: count(10_000),
  sessionsPerUser: count(100_000),
  sessionsPerSource: count(100_000),
  channelsPerConnection: count(10_000),
  // 0: never.
  idleSeconds: seconds(0, 31_536_000),
  // Notices come at once; this is the fallback for lost ones, so it stays short.
  recheckSeconds: seconds(1, 60),
  confirmGraceSeconds: seconds(0, 86_400),
  unconfirmedSeconds: seconds(1, 86_400),
  drainSeconds: seconds(0, 86_400),
  backoffAfterFailures: count(1_000_000),
});

type Settings = Value<typeof gatewayLimitsSchema>;
type GatewayLimitsConfig = {
  [Name in keyof Settings as Name extends `${infer Limit}Seconds` ? `${Limit}Ms` : Name]?: number;
};

/** Limits have the names of their settings, in milliseconds instead of seconds. */
export function readGatewayLimits(settings: Settings = {}): GatewayLimitsConfig {
  return Object.fromEntries(
    Object.entries(settings).map(([name, value]) =>
      name.endsWith('Seconds') ? [name.replace('Seconds', 'Ms'), Math.round(value * 1000)] : [name, value],
    ),
  );
}
