/** An organization of many people, for no one of them has thousands of keys. */

export const people = Array.from({ length: 200 }, (_, index) => `person-${index + 1}`);
export const lab = {
  organizations: [
    {
      slug: 'physics',
      name: 'Physics',
      members: people.map((username, index) => ({
        email: `${username}@physics.example`,
        role: index === 0 ? 'owner' : 'member',
        username,
      })),
    },
  ],
};
