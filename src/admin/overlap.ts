import type { ValidationError } from '../domain/validation-error.ts'

/** How long what was replaced stays good, so that whoever uses it can change over. */
export const DEFAULT_OVERLAP_HOURS = 24
const MAX_OVERLAP_HOURS = 720

export function faultsOfOverlap(hours: number): ValidationError[] {
  if (hours >= 0 && hours <= MAX_OVERLAP_HOURS) return []
  return [{ pointer: '/overlap_hours', message: `must be a number from 0 to ${MAX_OVERLAP_HOURS}` }]
}
