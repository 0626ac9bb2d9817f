/** The ACME library, which only an order needs: in the executable it is a part of its own. */
import acme from 'acme-client';

export { acme };
