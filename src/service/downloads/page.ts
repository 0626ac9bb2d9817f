/** The page at /download, with the visitor's system first. It has no script: all content is static. */
import { formatBytes } from '../../domain/units.ts';
import { type Html, hashOfSource, html, layout, style } from '../../lib/pages.ts';
import { type Executable, type Offer, platforms, type System, systemOf } from './offer.ts';
import { oldestNode } from './scripts.ts';

const sheet = `${style}
main { max-width: 52rem; }
h2 { margin: 2rem 0 .5rem; font-size: 1.1rem; line-height: 1.3; letter-spacing: -.01em; }
h3 { margin: 1.2rem 0 .35rem; font-size: .95rem; }
pre { margin: 0 0 .9rem; padding: .7rem .85rem; overflow-x: auto; background: var(--tint); border: 1px solid var(--line);
  border-radius: .6rem; }
pre:focus-visible, a:focus-visible { outline: 3px solid var(--ring); outline-offset: 2px; }
a { color: var(--accent); }
ul.files { margin: 0; padding: 0; list-style: none; }
ul.files li { padding: .8rem 0; border-top: 1px solid var(--line); }
ul.files li:first-child { border-top: 0; }
ul.files p { margin: 0; }
p { overflow-wrap: anywhere; }
.untested { color: var(--bad); }
footer { margin-bottom: 1rem; }
body { justify-content: flex-start; }
`;

export const pageHeaders = {
  'Content-Security-Policy': `default-src 'none'; style-src '${hashOfSource(sheet)}'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'`,
  'Cache-Control': 'no-cache',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
};

interface Visit {
  /** The public URL of the listener that answers. */
  url: string;
  platformUrl: string;
  system: System | undefined;
}

const titles: Record<System, string> = { linux: 'Linux', darwin: 'macOS', win32: 'Windows' };

export function downloadPage(offer: Offer, visit: Visit): string {
  const { system, platformUrl } = visit;
  const order = (['linux', 'darwin', 'win32'] as const).toSorted(
    (a, b) => Number(b === system) - Number(a === system),
  );
  const content = html`<h1>The client of Andromeda</h1>
<p class="soft">Version ${offer.version}, as this service has it. Nothing of it is fetched from anywhere else.</p>
${order.map((one) => systemSection(one, offer, visit))}
${anywhere(offer, visit)}
<h2>Then</h2>
${command(`andromeda auth login --url ${platformUrl}\nandromeda doctor`)}
<p class="soft small">The second says what is still missing between your machine and a shell, and what to do about it.</p>
${verification(offer, order[0])}`;
  return layout('Download', content, sheet);
}

function systemSection(system: System, offer: Offer, { url }: Visit): Html {
  const line = system === 'win32' ? `irm ${url}/install.ps1 | iex` : `curl -fsSL ${url}/install.sh | sh`;
  const where = system === 'win32' ? '%LOCALAPPDATA%\\Programs\\andromeda' : '~/.local/bin';
  const files = offer.executables.filter(({ platform }) => systemOf(platform) === system);
  return html`<h2>${titles[system]}</h2>
${command(line)}
<p class="soft small">It takes no ${system === 'win32' ? 'administrator' : 'root'}, verifies what it downloads, and puts it into ${where}${
    files.length > 0
      ? html`; with Node ${oldestNode} or later the portable client, else the program below`
      : html`. It needs Node ${oldestNode} or later`
  }.${system === 'win32' ? html` <span class="untested">This script was not run by whoever made it.</span>` : undefined}</p>
${files.length > 0 ? html`<ul class="files">${files.map(executable)}</ul>` : undefined}`;
}

function executable({ platform, name, bytes, sha256, tested, note }: Executable): Html {
  return html`<li><p><a href="download/${name}">${name}</a> <span class="soft">${platforms[platform]}, ${formatBytes(bytes)}, needs no Node</span></p>
<p class="small soft">SHA-256 <code>${sha256}</code></p>
${tested ? undefined : html`<p class="small untested">Not run by whoever released it.</p>`}
${note === '' ? undefined : html`<p class="small soft">${note}</p>`}</li>`;
}

function anywhere({ portable: { mjs, tgz } }: Offer, { url }: Visit): Html {
  return html`<h2>Anywhere with Node ${oldestNode} or later</h2>
<ul class="files">
<li><p><a href="andromeda.mjs">andromeda.mjs</a> <span class="soft">one file, ${formatBytes(mjs.bytes)}: <code>node andromeda.mjs</code></span></p>
<p class="small soft">SHA-256 <code>${mjs.sha256}</code></p></li>
<li><p><a href="andromeda.tgz">andromeda.tgz</a> <span class="soft">the same for npm, ${formatBytes(tgz.bytes)}</span></p>
<p class="small soft">SHA-256 <code>${tgz.sha256}</code></p></li>
</ul>
${command(`npx --yes ${url}/andromeda.tgz --help\nnpm install --global ${url}/andromeda.tgz`)}`;
}

function verification({ release, executables }: Offer, system: System | undefined): Html {
  const first = executables.find(({ platform }) => systemOf(platform) === system);
  const name = first?.name ?? 'andromeda.mjs';
  const commands: Record<System, string> = {
    linux: `sha256sum ${name}`,
    darwin: `shasum -a 256 ${name}`,
    win32: `(Get-FileHash ${name}).Hash`,
  };
  return html`<h2>Verify</h2>
<p>What this prints has to be the SHA-256 above:</p>
${command(commands[system ?? 'linux'])}
${
  release?.isSigned
    ? html`<p>The list of the programs that need no Node is signed by whoever released them. With their public key in
<code>allowed_signers</code>:</p>
${command(
  'ssh-keygen -Y verify -f allowed_signers -I andromeda -n andromeda-release -s clients.json.sig < clients.json',
)}
<p class="small"><a href="download/clients.json">clients.json</a> · <a href="download/clients.json.sig">clients.json.sig</a></p>`
    : undefined
}`;
}

/** Lines to type; a long line scrolls, also by keyboard. */
function command(lines: string): Html {
  return html`<pre tabindex="0"><code>${lines}</code></pre>`;
}
