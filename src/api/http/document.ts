/** The OpenAPI documents, which define both APIs; read once at start (as JSON made from openapi/*.yaml). */
import type { OpenAPIV3_1 } from 'openapi-types';
import { programText } from '../../lib/packaging.ts';

export type Document = OpenAPIV3_1.Document;

export interface DocumentOperation {
  operationId: string;
  method: 'get' | 'put' | 'post' | 'delete';
  route: string;
  isPublic: boolean;
  creates: boolean;
  /** A Business write, which takes Idempotency-Key and Audit-Reason. */
  isCommand: boolean;
  isTagged: boolean;
  errorField: boolean;
  /** The operation that answers; differs from `operationId` for an alias. */
  answeredBy: string;
  bodyLimit: number;
  /** The approximate limit on values and names in its body; undefined if only the bytes are limited. */
  bodyValues: number | undefined;
  source: OpenAPIV3_1.OperationObject;
}

const usualBodyLimit = 2 ** 20;

const loaded: { business?: Document; platform?: Document } = {};

export function loadDocument(api: 'business' | 'platform'): Document {
  loaded[api] ??= JSON.parse(programText(`api/generated/${api}.json`)) as Document;
  return loaded[api];
}

export function operationsOf(document: Document): DocumentOperation[] {
  return Object.entries(document.paths ?? {}).flatMap(([path, item]) =>
    (['get', 'put', 'post', 'delete'] as const).flatMap((method) => {
      const operation = item?.[method] as (OpenAPIV3_1.OperationObject & Extensions) | undefined;
      if (!operation?.operationId) return [];
      const success = operation.responses?.['200'] as OpenAPIV3_1.ResponseObject | undefined;
      const parameters = JSON.stringify(operation.parameters ?? []);
      return [
        {
          operationId: operation.operationId,
          method,
          route: path.replace(/\{(\w+)\}/g, ':$1'),
          isPublic: operation.security?.length === 0,
          creates: operation.responses?.['201'] !== undefined,
          isCommand: parameters.includes('IdempotencyKey'),
          isTagged: success?.headers?.['ETag'] !== undefined,
          errorField: operation['x-error-field'] === 'error',
          answeredBy: operation['x-alias-of'] ?? operation.operationId,
          bodyLimit: operation['x-body-limit'] ?? usualBodyLimit,
          bodyValues: operation['x-body-values'],
          source: operation,
        },
      ];
    }),
  );
}

export function resolve<T>(document: Document, node: unknown): T {
  const reference = (node as { $ref?: string } | undefined)?.$ref;
  if (!reference) return node as T;
  const target = reference
    .slice(2)
    .split('/')
    .reduce<unknown>((at, key) => (at as Record<string, unknown>)[key], document);
  return resolve<T>(document, target);
}

interface Extensions {
  'x-error-field'?: string;
  'x-alias-of'?: string;
  'x-body-limit'?: number;
  'x-body-values'?: number;
}
