/** The roles and the reach of users and admin keys. Forms choose their own default: a person reads, a key does everything. */
export const ROLES = [
  ['viewer', 'Viewer: reads'],
  ['operator', 'Operator: reads, enables and disables sources, replays'],
  ['admin', 'Admin: everything'],
] as const

export const REACH = [
  ['all', 'All tenants'],
  ['this', 'This tenant only'],
] as const
