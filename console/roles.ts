/** The roles and the reach of users and admin keys. Forms choose their own default: a person reads, a key does everything. */
export const ROLES = [
  ['viewer', 'Viewer: can view all data'],
  ['operator', 'Operator: can also enable, disable and test sources and destinations, and replay data'],
  ['admin', 'Admin: full access'],
] as const

export const REACH = [
  ['all', 'All tenants'],
  ['this', 'This tenant only'],
] as const
