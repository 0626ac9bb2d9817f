/** The /docs page: the document as HTML in one page without scripts. `andromeda call` sends requests. */
import type { OpenAPIV3_1 } from 'openapi-types';
import { hashOfSource } from '../../lib/pages.ts';
import { type Document, resolve } from './document.ts';

const style = `
:root{color-scheme:light dark;--fg:#1c2330;--dim:#5b6577;--bg:#fbfbfd;--line:#e2e5ec;--card:#fff;--get:#0b6bcb;--post:#12805c;--put:#9a5b00}
@media(prefers-color-scheme:dark){:root{--fg:#e6e9ef;--dim:#98a2b3;--bg:#12151b;--line:#2a303b;--card:#191d25;--get:#6cb0ff;--post:#58c9a0;--put:#e2a95a}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--fg);font:16px/1.5 system-ui,sans-serif;overflow-wrap:break-word}
main{max-width:54rem;margin:0 auto;padding:2rem 1.25rem 4rem}
h1{margin:0 0 .25rem}h2{margin:2.5rem 0 .75rem}h4{margin:1.25rem 0 .4rem}a{color:var(--get)}
code{font:.9em ui-monospace,monospace}summary code,p code{overflow-wrap:anywhere}.dim{color:var(--dim)}
details{background:var(--card);border:1px solid var(--line);border-radius:.6rem;margin:.5rem 0}
summary{padding:.7rem 1rem;cursor:pointer;display:flex;gap:.8rem;flex-wrap:wrap;align-items:baseline;border-radius:.6rem}
summary span{color:var(--dim)}.body{padding:0 1rem 1rem}
.m{font:600 .8rem ui-monospace,monospace;min-width:3.2rem}.get{color:var(--get)}.post{color:var(--post)}.put,.delete{color:var(--put)}
table{border-collapse:collapse;width:100%;font-size:.92rem}td,th{text-align:left;padding:.35rem .6rem .35rem 0;border-top:1px solid var(--line);vertical-align:top}
.old{text-decoration:line-through}
:focus-visible{outline:3px solid var(--get);outline-offset:2px}
@media(max-width:30rem){main{padding:1.25rem .75rem 3rem}.body{padding:0 .75rem .75rem}table,tbody,tr{display:block}tr{border-top:1px solid var(--line);padding:.3rem 0}td{display:inline;border:0;padding:0 .4rem 0 0;overflow-wrap:anywhere}}`;

export const docsHeaders = {
  'Content-Security-Policy': [
    "default-src 'none'",
    `style-src '${hashOfSource(style)}'`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
};

export function renderDocs({
  document,
  sibling,
}: {
  document: Document;
  sibling: { title: string; url: string };
}): string {
  const { title, version, description } = document.info;
  const sections = (document.tags ?? []).map(
    (tag) =>
      `<h2>${text(tag.name)}</h2><p class="dim">${prose(tag.description)}</p>${operations(document, tag.name)}`,
  );
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${text(title)}</title><style>${style}</style></head><body><main>
<h1>${text(title)} <span class="dim">${text(version)}</span></h1><p>${prose(description)}</p>
<p><a href="/openapi.json">openapi.json</a> · <a href="${text(sibling.url)}/docs">${text(sibling.title)}</a></p>
${sections.join('\n')}</main></body></html>`;
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
<div class="body"><p>${prose(operation.description)}</p>${reference(document, operation)}</div></details>`;
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

function text(value = ''): string {
  return value.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

function prose(value = ''): string {
  return text(value).replace(/`([^`]+)`/g, '<code>$1</code>');
}
