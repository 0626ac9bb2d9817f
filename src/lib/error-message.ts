/** The message of any thrown value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Why a file cannot be read or written, for a sentence. */
export function fileReason(error: unknown): string {
  const reasons: Record<string, string> = {
    ENOENT: 'there is no such file',
    EISDIR: 'it is a directory',
    EACCES: 'this account may not',
  };
  const { code = '' } = error as NodeJS.ErrnoException;
  return reasons[code] ?? (code || messageOf(error));
}
