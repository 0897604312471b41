"""What is known of a kind of provider before it is asked."""

from __future__ import annotations

from urllib.parse import urlsplit

import attrs

from kantan_agents.structured.asking.forms import FORCED_TOOL, NATIVE, PROMPT, TOOL, Form


@attrs.frozen(eq=False)
class Family:
    """Providers that behave alike when they are asked for an output of a schema.

    Attributes:
        name: How the family is called in documentation and traces.
        providers: kantan-llm's names of its providers.
        hosts: Ends of the host names its API is reached at, for clients that kantan-llm did not name.
        forms: What is worth trying, the best first; what is known not to work is left out.
        forms_beside_tools: The same where the agent has tools or hand-offs.
    """

    name: str
    providers: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    forms: tuple[Form, ...] = (NATIVE, FORCED_TOOL, TOOL, PROMPT)
    forms_beside_tools: tuple[Form, ...] = attrs.field()

    @forms_beside_tools.default
    def _same_forms(self) -> tuple[Form, ...]:
        return self.forms

    def answers_at(self, base_url: str) -> bool:
        """Whether one of its providers is reached at this URL."""
        host = urlsplit(base_url).hostname or ""
        return any(host == end or host.endswith(f".{end}") for end in self.hosts)
