/** The library, which only an order needs: a part of its own in the executable. */
import acme from 'acme-client';

export { acme };
