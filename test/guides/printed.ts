import assert from 'node:assert/strict'

const VARIES = /…|^\d{4}-\d\d-\d\dT|^[0-9a-f]{8}-[0-9a-f]{4}-|^req_/

/** `…` matches anything, and `019c…` matches any id. White space is ignored. */
export function assertPrinted(printed: string, expected: string, where: string): void {
  const plain = (text: string) => text.replace(/\s+/g, '')
  const pattern = plain(expected)
    .replaceAll('019c…', '…')
    .split('…')
    .map(part => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
    .join('.*?')
  assert.match(plain(printed), new RegExp(pattern), where)
}

/** The response contains everything that the guide shows. Ids and times may differ, and there may be more fields. */
export function assertAnswer(printed: string, expected: string, where: string): void {
  const shown = expected.replaceAll(/([[{,])\s*…\s*(?=[\]}])/g, (_, before) => (before === ',' ? '' : before))
  assertHolds(JSON.parse(printed), JSON.parse(shown), where)
}

function assertHolds(actual: unknown, shown: unknown, where: string): void {
  if (typeof shown === 'string' && VARIES.test(shown)) assert.equal(typeof actual, 'string', where)
  else if (typeof shown !== 'object' || shown === null) assert.equal(actual, shown, where)
  else {
    assert.ok(typeof actual === 'object' && actual !== null, `${where} is no object`)
    for (const [key, value] of Object.entries(shown))
      assertHolds((actual as Record<string, unknown>)[key], value, `${where} ${key}`)
  }
}
