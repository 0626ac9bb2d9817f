/** Loads the parts of the program: scripts that need not be parsed, for V8's own record of each lies beside it. */
import { Script } from 'node:vm';

export interface CodeSource {
  /** The script: an expression that is a function of (exports, require, module). ASCII only. */
  source(name: string): string;
  compiled?(name: string): Buffer;
  require: NodeJS.Require;
}

export interface CodeLoader {
  /** The exports of a part, which is run when it is first asked for. */
  load(name: string): unknown;
  /** The scripts run so far. */
  scripts: ReadonlyMap<string, Script>;
}

export function createCodeLoader({ source, compiled, require }: CodeSource): CodeLoader {
  const loaded = new Map<string, { exports: unknown }>();
  const scripts = new Map<string, Script>();
  return {
    scripts,
    load(name) {
      const known = loaded.get(name);
      if (known) return known.exports;
      const cachedData = compiled?.(name);
      const script = new Script(source(name), {
        filename: `andromeda:${name}`,
        ...(cachedData && { cachedData }),
      });
      if (script.cachedDataRejected && process.env['ANDROMEDA_DEBUG']) {
        process.stderr.write(`The compiled form of ${name} was refused; the program starts more slowly.\n`);
      }
      const module = { exports: {} as unknown };
      loaded.set(name, module);
      scripts.set(name, script);
      script.runInThisContext()(module.exports, require, module);
      return module.exports;
    },
  };
}
