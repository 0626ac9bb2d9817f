/** What is refused over SCIM, as RFC 7644 section 3.12 has it. */
export type ScimType =
  | 'invalidFilter'
  | 'tooMany'
  | 'uniqueness'
  | 'mutability'
  | 'invalidSyntax'
  | 'invalidPath'
  | 'noTarget'
  | 'invalidValue';

/** A refusal: its HTTP status, a sentence for the caller and, with 400 and 409, the kind of fault. */
export class ScimError extends Error {
  readonly status: number;
  readonly scimType: ScimType | undefined;

  constructor(status: number, message: string, scimType?: ScimType) {
    super(message);
    this.status = status;
    this.scimType = scimType;
  }
}

/** 400 with the kind of fault. */
export function badScim(scimType: ScimType, message: string): ScimError {
  return new ScimError(400, message, scimType);
}
