/** Attributes of SCIM resources, whose names are compared in any case (RFC 7643, section 2.1). */

/** A resource, or a complex attribute of one. */
export type Attributes = Record<string, unknown>;

/** Whether it is an object with attributes. */
export function isAttributes(value: unknown): value is Attributes {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The name that the resource has for this one; as given where it has none. */
export function nameIn(resource: Attributes, wanted: string): string {
  if (Object.hasOwn(resource, wanted)) return wanted;
  const folded = wanted.toLowerCase();
  return Object.keys(resource).find((name) => name.toLowerCase() === folded) ?? wanted;
}

/** The value of an attribute; undefined where it has none. */
export function valueIn(resource: unknown, name: string): unknown {
  if (!isAttributes(resource)) return undefined;
  const own = nameIn(resource, name);
  return Object.hasOwn(resource, own) ? resource[own] : undefined;
}

/** Sets an attribute under the name that it has already. */
export function setValue(resource: Attributes, name: string, value: unknown): void {
  const own = nameIn(resource, name);
  // Or an attribute of this name would be no attribute, but the prototype.
  Object.defineProperty(resource, own, { value, configurable: true, enumerable: true, writable: true });
}

/** The values of an attribute that may have several. */
export function valuesOf(value: unknown): unknown[] {
  if (value === undefined || value === null) return [];
  return Array.isArray(value) ? value : [value];
}
