import type { VNode } from 'preact'
import { h } from './html.ts'
import type { Route, RouteName } from './router.ts'

type LoadContext<Name extends RouteName> = { route: Route<Name>; signal: AbortSignal }

type ViewProps<Name extends RouteName, Data> = {
  data: Data
  route: Route<Name>
  /** Loads the page's data anew; what was typed and unfolded stays. */
  refresh(): Promise<void>
}

/** A page that is ready to be drawn. */
type OpenedPage = (refresh: () => Promise<void>) => VNode

export type PageDefinition<Name extends RouteName> = {
  open(context: LoadContext<Name>): Promise<OpenedPage>
}

/**
 * A page: first `load` reads what it shows, then `View` draws it. Meanwhile the page before stays, and whatever `load`
 * throws is shown instead, so that no view has to know about waiting and failing.
 */
export function definePage<Name extends RouteName, Data>(
  _name: Name,
  load: (context: LoadContext<Name>) => Promise<Data>,
  View: (props: ViewProps<Name, Data>) => VNode,
): PageDefinition<Name> {
  return {
    async open(context) {
      const data = await load(context)
      return refresh => h(View, { data, route: context.route, refresh })
    },
  }
}
