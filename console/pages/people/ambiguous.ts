import type { VNode } from 'preact'
import { Problem } from '../../api/request.ts'
import { Page } from '../../components/page.ts'
import { h, html } from '../../html.ts'
import { link } from '../../router.ts'
import { PersonForm } from './people.ts'

/** Of a name that several people go by: each by the kind of name, and their profile. */
type Choices = { choices: { name: string; profile: string }[] }

/** The answer, or the people that it asks to choose from. */
export async function orChoices<Answer>(answer: Promise<Answer>): Promise<Answer | Choices> {
  try {
    return await answer
  } catch (error) {
    if (!(error instanceof Problem) || error.code !== 'person_ambiguous') throw error
    // Each is told as kind:name (profile).
    const told = [...error.message.matchAll(/((?:user|contact|visitor|email):.+?) \((prof_\d+)\)/g)]
    return { choices: told.map(([, name, profile]) => ({ name: name!, profile: profile! })) }
  }
}

export function ChoicePage({ id, choices }: Choices & { id: string }): VNode {
  return h(
    Page,
    {
      title: 'More than one person',
      lead: html`These go by ${id}, and nothing has told yet that they are one.`,
    },
    html`<ul>
      ${choices.map(
        ({ name, profile }) =>
          html`<li><a href=${link('person', { id: profile })}>${name}</a> <span class="faint">${profile}</span></li>`,
      )}
    </ul>`,
    h(PersonForm, { name: id }),
  )
}
