/** Shared parts of all pages that the server renders. They load nothing from other hosts: the CSP names the style sheet. */
import { createHash } from 'node:crypto';
import { escapeControls } from '../domain/text.ts';

/** HTML as tagged templates: values are escaped, unless they are HTML made here. */
export interface Html {
  readonly html: string;
}

type Part = Html | string | number | undefined | readonly Html[];

const made = new WeakSet<Html>();

/** Escapes every part that `html` or `trusted` did not return, also an object of the same shape. */
export function html(strings: TemplateStringsArray, ...parts: Part[]): Html {
  return trusted(strings.reduce((text, string, i) => text + render(parts[i - 1]) + string));
}

/** Marks our own text, the style sheet, as not to be escaped. Never for input from outside. */
export function trusted(text: string): Html {
  const value = { html: text };
  made.add(value);
  return value;
}

const entities: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Escapes markup, and control characters that hide text or reverse its order. */
function escapeHtml(text: string): string {
  return escapeControls(text).replace(/[&<>"']/g, (character) => entities[character] ?? '');
}

function render(part: Part): string {
  if (part === undefined) return '';
  if (typeof part !== 'object') return escapeHtml(String(part));
  if ('html' in part) return made.has(part) ? part.html : escapeHtml(part.html);
  return part.map(render).join('');
}

export const style = `
:root {
  color-scheme: light dark;
  --page: #f4f5f9; --card: #fff; --line: #dfe2ea; --edge: #858ca0; --text: #181b25; --soft: #5a6072; --field: #fff;
  --accent: #4338ca; --accent-hover: #3730a3; --on-accent: #fff; --ring: #a5b4fc; --tint: #eef0fb;
  --bad: #a4161a; --bad-tint: #fdecec; --good: #14713a; --good-tint: #e5f5eb;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #0d0f16; --card: #161923; --line: #2b3040; --edge: #6a7288; --text: #e9ebf3; --soft: #a0a7ba; --field: #0f121a;
    --accent: #8b8ffb; --accent-hover: #a5a8ff; --on-accent: #0e1020; --ring: #4f53b5; --tint: #1e2233;
    --bad: #ff9b9b; --bad-tint: #331a1e; --good: #7fdca1; --good-tint: #14291d;
  }
}
* { box-sizing: border-box; }
html { font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
body { margin: 0; min-height: 100vh; padding: 1.5rem 1rem; background: var(--page); color: var(--text);
  display: flex; flex-direction: column; align-items: center; justify-content: center; gap: 1.25rem; }
header { display: flex; align-items: center; gap: .6rem; font-weight: 650; font-size: 1.1rem; letter-spacing: -.01em; }
header svg { width: 1.9rem; height: 1.9rem; color: var(--accent); }
main { width: 100%; max-width: 26rem; padding: 2rem; background: var(--card); border: 1px solid var(--line);
  border-radius: 1rem; box-shadow: 0 1px 2px rgb(0 0 0 / .05), 0 12px 32px rgb(20 24 60 / .07); }
footer { color: var(--soft); font-size: .8125rem; text-align: center; overflow-wrap: anywhere; }
h1 { margin: 0 0 .4rem; font-size: 1.45rem; line-height: 1.25; letter-spacing: -.02em; font-weight: 680; }
p { margin: 0 0 1rem; }
p:last-child { margin-bottom: 0; }
.soft { color: var(--soft); }
.small { font-size: .875rem; }
.after { margin: 1.1rem 0 0; }
form { margin: 1.35rem 0 0; }
label { display: block; margin: 0 0 .35rem; font-size: .875rem; font-weight: 600; }
input { width: 100%; margin: 0 0 1.1rem; padding: .7rem .8rem; font: inherit; color: inherit; background: var(--field);
  border: 1px solid var(--edge); border-radius: .6rem; }
input.code { font: 600 1.35rem/1.3 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; letter-spacing: .12em;
  text-align: center; text-transform: uppercase; }
input.code::placeholder { color: var(--soft); opacity: .45; }
button { width: 100%; padding: .75rem 1rem; font: inherit; font-weight: 620; border: 1px solid transparent;
  border-radius: .6rem; color: var(--on-accent); background: var(--accent); cursor: pointer; }
button:hover { background: var(--accent-hover); }
form > button + button { margin-top: .6rem; }
button.second { color: var(--text); background: transparent; border-color: var(--edge); }
button.second:hover { background: var(--tint); }
button.link { width: auto; padding: 0; border: 0; border-radius: .2rem; font-weight: 600; color: var(--accent);
  background: none; }
button.link:hover { text-decoration: underline; }
input:focus-visible, button:focus-visible, a:focus-visible { outline: 3px solid var(--ring); outline-offset: 1px; }
a { color: var(--accent); }
.choice { display: grid; grid-template-columns: 1fr 1fr; gap: .75rem; }
.message { margin: 1.1rem 0 0; padding: .7rem .9rem; border-radius: .6rem; font-size: .9375rem; }
.bad { color: var(--bad); background: var(--bad-tint); }
.sign { display: grid; place-items: center; width: 3rem; height: 3rem; margin: 0 0 1rem; border-radius: 50%; }
.sign svg { width: 1.5rem; height: 1.5rem; }
.good { color: var(--good); background: var(--good-tint); }
.picture svg { display: block; width: 13rem; margin: 1rem auto; background: #fff; border-radius: .5rem; }
ul.codes { columns: 2; padding-left: 1.2rem; line-height: 1.9; }
.usercode { display: block; margin: 1.1rem 0; padding: .8rem; border-radius: .75rem; background: var(--tint);
  text-align: center; font: 650 1.75rem/1.2 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace;
  letter-spacing: .1em; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .4rem 1rem; margin: 0 0 1.1rem; font-size: .9375rem; }
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; }
.who { display: flex; flex-wrap: wrap; gap: .15rem .6rem; align-items: baseline; margin: 1.25rem 0 0; padding: 1rem 0 0;
  border-top: 1px solid var(--line); font-size: .875rem; color: var(--soft); }
.who span { overflow-wrap: anywhere; }
code { font: .92em ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
@media (max-width: 30rem) {
  body { justify-content: flex-start; padding: 1.25rem .75rem; }
  main { padding: 1.4rem 1.2rem; }
}
@media (forced-colors: active) { main, button, input { border-color: currentColor; } }
`;

/** The hash of a style sheet or a script, as a content security policy names it. */
export function hashOfSource(sheet: string): string {
  return `sha256-${createHash('sha256').update(sheet).digest('base64')}`;
}

export const styleHash: string = hashOfSource(style);

const logo = html`<svg viewBox="0 0 32 32" aria-hidden="true"><g transform="rotate(-32 16 16)" fill="none"
 stroke="currentColor"><ellipse cx="16" cy="16" rx="14.5" ry="7" stroke-width="1.6" opacity=".4"/>
<ellipse cx="16" cy="16" rx="9.5" ry="4.4" stroke-width="1.8" opacity=".75"/>
<ellipse cx="16" cy="16" rx="4.4" ry="2.5" fill="currentColor"/></g></svg>`;

/** A whole page. `title` is shown in the browser's tab; `sheet` replaces the usual style sheet. */
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

export function problem(message: string | undefined): Html | undefined {
  return message === undefined ? undefined : html`<p class="message bad" role="alert">${message}</p>`;
}
