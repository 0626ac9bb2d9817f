/**
 * The /docs page: the document made readable, in one self-contained page. Its script (docs/page.js) adds signing in and
 * trying calls; without it the page is the same to read. It connects to its own API and to the issuer, and to nothing else.
 */
import type { OpenAPIV3_1 } from 'openapi-types';
import { programText } from '../../../lib/packaging.ts';
import { hashOfSource } from '../../../lib/pages.ts';
import { type Document, resolve } from '../document.ts';

export interface DocsOptions {
  document: Document;
  url: string;
  sibling: { title: string; url: string };
  signIn: DocsSignIn;
}

const script = programText('api/http/docs/page.js');

export interface Docs {
  headers: Record<string, string>;
  page(): string;
}

export function createDocs(options: DocsOptions): Docs {
  let page: string | undefined;
  return {
    headers: {
      'Content-Security-Policy': policy(options.signIn.issuer),
      'X-Content-Type-Options': 'nosniff',
      'Referrer-Policy': 'no-referrer',
    },
    page() {
      page ??= render(options);
      return page;
    },
  };
}

/** What the page may do: our own style sheet and script, by their hashes, and calls to its API and the issuer. */
function policy(issuer: string): string {
  return [
    "default-src 'none'",
    `style-src '${hashOfSource(style)}'`,
    `script-src '${hashOfSource(script)}'`,
    `connect-src 'self' ${new URL(issuer).origin}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

function render({ document, url, sibling, signIn }: DocsOptions): string {
  const { title, version, description } = document.info;
  const sections = (document.tags ?? []).map(
    (tag) =>
      `<h2>${text(tag.name)}</h2><p class="dim">${prose(tag.description)}</p>${operations(document, tag.name)}`,
  );
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${text(title)}</title><style>${style}</style></head><body><main id="page" ${sessionFacts(url, signIn)}>
<h1>${text(title)} <span class="dim">${text(version)}</span></h1><p>${prose(description)}</p>
<p><a href="/openapi.json">openapi.json</a> · <a href="${text(sibling.url)}/docs">${text(sibling.title)}</a></p>
${sessionPanel}
${sections.join('\n')}</main><script type="module">${script}</script></body></html>`;
}

function operations(document: Document, tag: string): string {
  return Object.entries(document.paths ?? {})
    .flatMap(([path, item]) =>
      Object.entries(item ?? {})
        .filter(([, operation]) => (operation as OpenAPIV3_1.OperationObject).tags?.includes(tag))
        .map(([method, operation]) =>
          section(document, method, path, operation as OpenAPIV3_1.OperationObject),
        ),
    )
    .join('\n');
}

function section(document: Document, method: string, path: string, operation: OpenAPIV3_1.OperationObject) {
  return `<details><summary><b class="m ${method}">${method.toUpperCase()}</b><code${operation.deprecated ? ' class="old"' : ''}>${text(path)}</code><span>${text(operation.summary)}</span></summary>
<div class="body"><p>${prose(operation.description)}</p>${reference(document, operation)}${tryForm(document, method, path, operation)}</div></details>`;
}

/** The one style sheet of the page, whose content security policy names it by its hash. */
const style = `
:root{color-scheme:light dark;--fg:#1c2330;--dim:#5b6577;--bg:#fbfbfd;--line:#e2e5ec;--edge:#858ca0;--card:#fff;--tint:#f1f3f8;--get:#0b6bcb;--post:#12805c;--put:#9a5b00;--bad:#a4161a}
@media(prefers-color-scheme:dark){:root{--fg:#e6e9ef;--dim:#98a2b3;--bg:#12151b;--line:#2a303b;--edge:#6a7288;--card:#191d25;--tint:#12151b;--get:#6cb0ff;--post:#58c9a0;--put:#e2a95a;--bad:#ff9b9b}}
*{box-sizing:border-box}[hidden]{display:none!important}
body{margin:0;background:var(--bg);color:var(--fg);font:16px/1.5 system-ui,sans-serif;overflow-wrap:break-word}
main{max-width:54rem;margin:0 auto;padding:2rem 1.25rem 4rem}
h1{margin:0 0 .25rem}h2{margin:2.5rem 0 .75rem}h4{margin:1.25rem 0 .4rem}a{color:var(--get)}
code,pre{font:.9em ui-monospace,monospace}summary code,p code,pre{overflow-wrap:anywhere}.dim{color:var(--dim)}
details{background:var(--card);border:1px solid var(--line);border-radius:.6rem;margin:.5rem 0}
summary{padding:.7rem 1rem;cursor:pointer;display:flex;gap:.8rem;flex-wrap:wrap;align-items:baseline;border-radius:.6rem}
summary span{color:var(--dim)}.body{padding:0 1rem 1rem}
.m{font:600 .8rem ui-monospace,monospace;min-width:3.2rem}.get{color:var(--get)}.post{color:var(--post)}.put,.delete{color:var(--put)}
table{border-collapse:collapse;width:100%;font-size:.92rem}td,th{text-align:left;padding:.35rem .6rem .35rem 0;border-top:1px solid var(--line);vertical-align:top}
.old{text-decoration:line-through}
.session{background:var(--card);border:1px solid var(--line);border-radius:.6rem;padding:1rem;margin:1.5rem 0}.session p{margin:0 0 .6rem}.session details{border:0;margin:.4rem 0 0}.session summary{display:inline;padding:0;color:var(--dim);text-decoration:underline}
.usercode{display:inline-block;padding:.4rem .8rem;border-radius:.5rem;background:var(--tint);font:650 1.5rem/1.2 ui-monospace,monospace;letter-spacing:.1em}
form{margin:.8rem 0 0}label{display:block;margin:.6rem 0 .2rem;font-size:.9rem;font-weight:600}label span{font-weight:400;color:var(--dim)}
input,select,textarea{width:100%;max-width:100%;padding:.45rem .6rem;font:.9rem ui-monospace,monospace;color:inherit;background:var(--bg);border:1px solid var(--edge);border-radius:.4rem}
textarea{resize:vertical}.secret{-webkit-text-security:disc}
button{margin:.8rem .5rem 0 0;padding:.45rem 1.1rem;font:600 .95rem system-ui,sans-serif;color:var(--card);background:var(--get);border:1px solid transparent;border-radius:.4rem;cursor:pointer}
button.second{color:var(--fg);background:transparent;border-color:var(--edge)}
:focus-visible{outline:3px solid var(--get);outline-offset:2px}
.status{font-weight:600;margin:.9rem 0 .4rem}.bad{color:var(--bad)}
pre{margin:.4rem 0 0;padding:.7rem .8rem;background:var(--tint);border:1px solid var(--line);border-radius:.4rem;white-space:pre-wrap;max-height:32rem;overflow:auto}
@media(max-width:30rem){main{padding:1.25rem .75rem 3rem}.body{padding:0 .75rem .75rem}table,tbody,tr{display:block}tr{border-top:1px solid var(--line);padding:.3rem 0}td{display:inline;border:0;padding:0 .4rem 0 0;overflow-wrap:anywhere}}`;

function tryForm(
  document: Document,
  method: string,
  path: string,
  operation: OpenAPIV3_1.OperationObject,
): string {
  const id = (name: string) => text(`${operation.operationId}.${name}`);
  const fields = (operation.parameters ?? []).map((one) => {
    const parameter = resolve<OpenAPIV3_1.ParameterObject>(document, one);
    return label(id(parameter.name), parameter.name, parameter.in) + control(document, id, parameter);
  });
  const body = schemaOf(document, operation.requestBody);
  if (body) {
    const sample = JSON.stringify(sampleOf(document, body), null, 2);
    const rows = Math.min(16, sample.split('\n').length + 1);
    // A line break right behind the tag does not count.
    fields.push(
      `${label(id('body'), 'Body', 'JSON')}<textarea id="${id('body')}" data-in="body" rows="${rows}" spellcheck="false">\n${text(sample)}</textarea>`,
    );
  }
  const call = `${method.toUpperCase()} ${path}`;
  return `<form class="try" hidden autocomplete="off" aria-label="Try ${text(call)}" data-method="${method.toUpperCase()}" data-path="${text(path)}"><h4>Try it</h4>${fields.join('')}<button>Send</button>
<p class="status" role="status"></p><pre class="headers" aria-label="Reply headers" hidden></pre><pre class="reply" aria-label="Reply" tabindex="0" hidden></pre></form>`;
}

function label(id: string, name: string, location: string): string {
  return `<label for="${id}">${text(name)} <span>${text(location)}</span></label>`;
}

function control(
  document: Document,
  id: (name: string) => string,
  parameter: OpenAPIV3_1.ParameterObject,
): string {
  const { name, in: location } = parameter;
  const schema = resolve<Schema>(document, parameter.schema ?? {});
  // Headers are those of a write, which has no use without them; a query can be tried with anything.
  const required = location === 'path' || location === 'header' ? ' required' : '';
  const common = `id="${id(name)}" name="${text(name)}" data-in="${location}"`;
  const choices = schema.type === 'boolean' ? ['true', 'false'] : schema.enum?.map(String);
  if (choices) {
    const options = [...(parameter.required ? [] : ['']), ...choices];
    return `<select ${common}>${options.map((one) => `<option>${text(one)}</option>`).join('')}</select>`;
  }
  const hint = schema.default === undefined ? '' : ` placeholder="${text(String(schema.default))}"`;
  const numeric = schema.type === 'integer' ? ' inputmode="numeric"' : '';
  return `<input ${common}${required}${hint}${numeric} spellcheck="false">`;
}

const mostLevels = 6;

/**
 * The schema's own example, default or first value where it has one, else an empty value of its type. Objects have
 * what is required in them; where nothing is, everything there is, as a skeleton to cut down.
 */
export function sampleOf(document: Document, holder: unknown, level = 0): unknown {
  const schema = resolve<Schema | undefined>(document, holder);
  if (!schema || level > mostLevels) return null;
  const given = [schema.examples?.[0], schema.example, schema.const, schema.default, schema.enum?.[0]];
  const value = given.find((one) => one !== undefined);
  if (value !== undefined) return value;
  if (schema.oneOf) return sampleOf(document, schema.oneOf[0], level + 1);
  const type = [schema.type].flat().find((one) => one !== 'null');
  switch (type) {
    case 'object': {
      const all = Object.entries(schema.properties ?? {});
      const required = all.filter(([name]) => schema.required?.includes(name));
      const chosen = required.length > 0 ? required : all;
      return Object.fromEntries(
        chosen.map(([name, property]) => [name, sampleOf(document, property, level + 1)]),
      );
    }
    case 'array': {
      const item = sampleOf(document, (schema as { items?: unknown }).items, level + 1);
      return item === '' || item === null ? [] : [item];
    }
    case 'integer':
    case 'number':
      return schema.minimum ?? 0;
    case 'boolean':
      return false;
    case 'string':
      return schema.format === 'date-time' ? '2030-01-01T00:00:00Z' : '';
    default:
      return null;
  }
}

type Schema = OpenAPIV3_1.SchemaObject;

function reference(document: Document, operation: OpenAPIV3_1.OperationObject): string {
  const inputs = (operation.parameters ?? []).map((parameter) => {
    const {
      name,
      in: location,
      description,
      schema,
    } = resolve<OpenAPIV3_1.ParameterObject>(document, parameter);
    return row(name, location, describe(document, schema as Schema), description);
  });
  const body = schemaOf(document, operation.requestBody);
  const reply = schemaOf(document, operation.responses?.['201'] ?? operation.responses?.['200']);
  const rows = (schema: Schema | undefined, location: string) =>
    schema ? properties(document, schema).map(([name, type, note]) => row(name, location, type, note)) : [];
  return `${table('Send', [...inputs, ...rows(body, 'body')])}${table('Get', rows(reply, ''))}`;
}

function schemaOf(document: Document, holder: unknown): Schema | undefined {
  if (!holder) return undefined;
  const { content } = resolve<OpenAPIV3_1.ResponseObject>(document, holder);
  const schema = content?.['application/json']?.schema;
  return schema && resolve<Schema>(document, schema);
}

function properties(document: Document, schema: Schema): [string, string, string | undefined][] {
  return Object.entries(schema.properties ?? {}).map(([name, property]) => {
    const { description } = resolve<Schema>(document, property);
    return [name, describe(document, property as Schema), description];
  });
}

function describe(document: Document, holder: Schema | undefined): string {
  if (!holder) return '';
  const schema = resolve<Schema>(document, holder);
  if (schema.enum) return schema.enum.map(String).join(' | ');
  if (schema.type === 'array') return `list of ${describe(document, schema.items as Schema)}`;
  if (schema.type === 'object' && schema.properties)
    return `{ ${Object.keys(schema.properties).join(', ')} }`;
  return [schema.type ?? schema.oneOf?.map((one) => describe(document, one as Schema)) ?? '']
    .flat()
    .join(' or ');
}

function table(title: string, rows: string[]): string {
  return rows.length === 0 ? '' : `<h4>${title}</h4><table>${rows.join('')}</table>`;
}

function row(name: string, location: string, type: string, note = ''): string {
  return `<tr><td><code>${text(name)}</code></td><td class="dim">${text(location)}</td><td>${text(type)}</td><td class="dim">${prose(note)}</td></tr>`;
}

/** Any text, as it is: safe between tags and inside quotes. */
function text(value = ''): string {
  return value.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** A description of the document, with its `code` marked as such. */
function prose(value = ''): string {
  return text(value).replace(/`([^`]+)`/g, '<code>$1</code>');
}

export interface DocsSignIn {
  issuer: string;
  clientId: string;
  /** Undefined: the usual ones, and one for each audience (contract, "Authentication" 4). */
  scopes: readonly string[] | undefined;
  audiences: readonly string[];
}

/** Attributes for the page's script. `url` is where the API is meant to be called. */
function sessionFacts(url: string, { issuer, clientId, scopes, audiences }: DocsSignIn): string {
  const usual = ['openid', 'profile', 'email'];
  const wanted = scopes ?? [...usual, ...audiences.map((one) => `urn:zitadel:iam:org:project:id:${one}:aud`)];
  // Nothing that outlives the page is asked for.
  const scope = wanted.filter((one) => one !== 'offline_access').join(' ');
  const facts = { url, issuer, client: clientId, scope };
  return Object.entries(facts)
    .map(([name, value]) => `data-${name}="${text(value)}"`)
    .join(' ');
}

/** Hidden until the script shows it: signing in here needs the script. */
const sessionPanel = `<section class="session" id="session" aria-label="Sign-in" hidden>
<p id="who" role="status">Not signed in. Sign in to try a call: open an operation and fill in its form.</p>
<div id="device" hidden><p><a id="verify" target="_blank" rel="noopener noreferrer">Open the sign-in page</a> and compare the code that it shows:</p><p><code class="usercode" id="code"></code></p></div>
<button type="button" id="sign-in">Sign in</button><button type="button" class="second" id="sign-out" hidden>Sign out</button><button type="button" class="second" id="cancel" hidden>Cancel</button>
<details id="paste"><summary>Use an access token that you have</summary><form id="paste-form" autocomplete="off"><label for="token">Access token</label><input class="secret" id="token" required spellcheck="false" autocapitalize="off"><button>Use it</button></form></details>
</section>`;
