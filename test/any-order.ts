// Tests that the result does not depend on the order of arrival.

export function permutations<T>(list: readonly T[]): T[][] {
  if (list.length <= 1) return [[...list]]
  return list.flatMap((first, i) => permutations(list.toSpliced(i, 1)).map(rest => [first, ...rest]))
}

/**
 * Carries out each order of steps, all orders side by side: the first step of each, then the second of each, and so on. `settle` is
 * called after every round, so that a step finds the effects of the previous one of its order. `run` must keep the orders apart, for
 * example by a tenant or an id for each.
 */
export async function inLockstep<Step>(
  orders: readonly (readonly Step[])[],
  run: (step: Step, order: number) => Promise<unknown>,
  settle: () => Promise<void>,
): Promise<void> {
  for (const i of orders[0]!.keys()) {
    await Promise.all(orders.map((steps, order) => run(steps[i]!, order)))
    await settle()
  }
}
