export type Tenant = { id: number; name: string; conversionTypes: string[] | null; createdAt: Date }

export function publicTenantId(id: number): string {
  return `ten_${id}`
}

export function parseTenantId(text: string): number | null {
  const digits = /^ten_([1-9]\d{0,9})$/.exec(text)?.[1]
  return digits !== undefined && Number(digits) <= 2_147_483_647 ? Number(digits) : null
}
