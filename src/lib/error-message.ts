/** The message of any thrown value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Why a file cannot be read or written, for a sentence; `missing`, if something is not there. */
export function fileReason(error: unknown, missing = 'there is no such file'): string {
  const reasons: Record<string, string> = {
    ENOENT: missing,
    EISDIR: 'it is a directory',
    EACCES: 'this account may not',
  };
  return reasons[(error as NodeJS.ErrnoException).code ?? ''] ?? messageOf(error);
}
