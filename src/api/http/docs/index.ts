/**
 * The /docs page: the document made readable, in one self-contained page. Its script (docs/page.js) adds signing in and
 * trying calls; without it the page is the same to read. It connects to its own API and to the issuer, and to nothing else.
 */
import { createHash } from 'node:crypto';
import type { OpenAPIV3_1 } from 'openapi-types';
import { programText } from '../../../lib/packaging.ts';
import type { Document } from '../document.ts';
import { tryForm } from './form.ts';
import { prose, text } from './html.ts';
import { reference } from './reference.ts';
import { type DocsSignIn, sessionFacts, sessionPanel } from './session.ts';
import { style } from './style.ts';

export interface DocsOptions {
  document: Document;
  /** Where this API is meant to be called. */
  url: string;
  /** The other API, for the link at the top. */
  sibling: { title: string; url: string };
  signIn: DocsSignIn;
}

const script = programText('api/http/docs/page.js');

export interface Docs {
  headers: Record<string, string>;
  page(): string;
}

/** The page, made when it is first asked for, and its headers. */
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
    `style-src '${hash(style)}'`,
    `script-src '${hash(script)}'`,
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

function hash(source: string): string {
  return `sha256-${createHash('sha256').update(source).digest('base64')}`;
}
