/** First arguments of processes that the program starts from its own executable; nobody types them. */
export const loginNodeRole = 'internal:login-node';
export const exitRole = 'internal:exit';
