/** What an operation takes and answers, as tables. */
import type { OpenAPIV3_1 } from 'openapi-types';
import { type Document, resolve } from '../document.ts';
import { prose, text } from './html.ts';

export type Schema = OpenAPIV3_1.SchemaObject;

/** The tables of one operation: what to send, what comes back. */
export function reference(document: Document, operation: OpenAPIV3_1.OperationObject): string {
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

/** The schema of what a request body or a response carries as JSON. */
export function schemaOf(document: Document, holder: unknown): Schema | undefined {
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
