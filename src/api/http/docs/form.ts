/** The "Try it" form of an operation. Hidden until the page's script, which sends it, shows it. */
import type { OpenAPIV3_1 } from 'openapi-types';
import { type Document, resolve } from '../document.ts';
import { text } from './html.ts';
import { type Schema, schemaOf } from './reference.ts';
import { sampleOf } from './sample.ts';

export function tryForm(
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
