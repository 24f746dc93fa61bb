import { Page, Section, Tabs } from '../../components/page.ts'
import { h } from '../../html.ts'
import { definePage } from '../../page-definition.ts'
import { link } from '../../router.ts'
import { Arrivals } from './arrivals.ts'
import { SENDERS, senderOf } from './senders.ts'
import { ConnectWithKey } from './with-key.ts'
import { ConnectWithSource } from './with-source.ts'

/** From nothing to the first event. */
export const page = definePage(
  'connect',
  async () => null,
  ({ route }) => {
    const sender = senderOf(route.params.sender)
    return h(
      Page,
      {
        title: 'Connect',
        lead: 'Choose who sends. What is below works as it stands, with your address and key.',
      },
      h(Tabs, { label: 'Senders', tabs: TABS, current: sender.name }),
      sender.by === 'key'
        ? h(ConnectWithKey, { sender: sender.name })
        : h(ConnectWithSource, { sender: sender.name, title: sender.title }),
      h(Section, { title: 'Arriving now' }, h(Arrivals, {})),
    )
  },
)

const TABS = SENDERS.map(({ name, title }) => ({ name, title, href: link('connect', { sender: name }) }))
