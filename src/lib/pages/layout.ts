/** What all pages that the server renders share. Nothing from other hosts: the page's CSP names its style sheet. */
import { type Html, html, trusted } from './html.ts';
import { style } from './style.ts';

const logo = html`<svg viewBox="0 0 32 32" aria-hidden="true"><g transform="rotate(-32 16 16)" fill="none"
 stroke="currentColor"><ellipse cx="16" cy="16" rx="14.5" ry="7" stroke-width="1.6" opacity=".4"/>
<ellipse cx="16" cy="16" rx="9.5" ry="4.4" stroke-width="1.8" opacity=".75"/>
<ellipse cx="16" cy="16" rx="4.4" ry="2.5" fill="currentColor"/></g></svg>`;

/** A whole page. `title` stands in the browser's tab; `sheet` is the style sheet, where it is not the usual one. */
export function layout(title: string, content: Html, sheet: string = style): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${title} · Andromeda</title>
<style>${trusted(sheet)}</style>
</head>
<body>
<header>${logo}<span>Andromeda</span></header>
<main>
${content}
</main>
<footer>Access to GPU clusters</footer>
</body>
</html>
`.html;
}

/** A sentence about what went wrong, where a screen reader reads it at once. */
export function problem(message: string | undefined): Html | undefined {
  return message === undefined ? undefined : html`<p class="message bad" role="alert">${message}</p>`;
}
