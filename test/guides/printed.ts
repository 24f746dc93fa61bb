import assert from 'node:assert/strict'

const VARIES = /…|^\d{4}-\d\d-\d\dT|^[0-9a-f]{8}-[0-9a-f]{4}-|^req_/

/** `…` stands for anything, and `019c…` for any id; blanks do not count. */
export function assertPrinted(printed: string, expected: string, where: string): void {
  const plain = (text: string) => text.replace(/\s+/g, '')
  const pattern = plain(expected)
    .replaceAll('019c…', '…')
    .split('…')
    .map(part => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
    .join('.*?')
  assert.match(plain(printed), new RegExp(pattern), where)
}

/** The answer has all that the guide shows: ids and times may be others, and there may be more. */
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
