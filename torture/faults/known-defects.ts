/**
 * Faults with a known defect, and its description. Tests skip them until the defect is fixed; the fix removes the line here.
 * `npm run torture` still injects them.
 */
export const KNOWN_DEFECTS: Record<string, string> = {}
