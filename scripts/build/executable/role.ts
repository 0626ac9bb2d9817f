/** The first argument of a process that the program starts from its own executable; nobody types it. */
export const loginNodeRole = 'internal:login-node';
