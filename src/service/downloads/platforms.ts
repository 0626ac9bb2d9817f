/** The machines that an executable can be for, by Node's names for them. */

export const platforms = {
  'linux-x64': 'Linux (x86-64)',
  'linux-arm64': 'Linux (ARM)',
  'win32-x64': 'Windows (x86-64)',
  'darwin-arm64': 'macOS (Apple silicon)',
  'darwin-x64': 'macOS (Intel)',
} as const;

export type Platform = keyof typeof platforms;

export function isPlatform(value: unknown): value is Platform {
  return typeof value === 'string' && Object.hasOwn(platforms, value);
}

export type System = 'linux' | 'win32' | 'darwin';

export function systemOf(platform: Platform): System {
  return platform.slice(0, platform.indexOf('-')) as System;
}

/** The system that a browser or another program says it runs on; undefined where it does not say one of these. */
export function visitorSystem(userAgent: string, hint: string): System | undefined {
  const said = `${hint} ${userAgent}`;
  if (/android|iphone|ipad/i.test(said)) return undefined;
  if (/windows|win64|powershell/i.test(said)) return 'win32';
  if (/mac ?os|macintosh|darwin/i.test(said)) return 'darwin';
  return /linux|x11|cros/i.test(said) ? 'linux' : undefined;
}
