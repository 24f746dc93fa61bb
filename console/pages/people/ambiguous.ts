import type { VNode } from 'preact'
import { Problem } from '../../api/request.ts'
import type { PersonChoice } from '../../api/types.ts'
import { Page } from '../../components/page.ts'
import { h, html } from '../../html.ts'
import { link } from '../../router.ts'
import { PersonForm } from './people.ts'

/** Of a name that several people go by. */
type Choices = { choices: PersonChoice[] }

/** The answer, or the people that it asks to choose from. */
export async function orChoices<Answer>(answer: Promise<Answer>): Promise<Answer | Choices> {
  try {
    return await answer
  } catch (error) {
    if (!(error instanceof Problem) || error.code !== 'person_ambiguous') throw error
    return { choices: error.choices }
  }
}

export function ChoicePage({ id, choices }: Choices & { id: string }): VNode {
  return h(
    Page,
    {
      title: 'More than one person',
      lead: html`Several people have the identifier ${id}. They are not linked to each other.`,
    },
    html`<ul>
      ${choices.map(
        ({ name, profile_id: profile }) =>
          html`<li><a href=${link('person', { id: profile })}>${name}</a> <span class="faint">${profile}</span></li>`,
      )}
    </ul>`,
    h(PersonForm, { name: id }),
  )
}
