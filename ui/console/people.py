"""Questions about people: who opens a session in which role, and who comes, leaves or changes role while it goes on.

May not: send anything, or tell whether people are who they say they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from textual.widget import Widget
from textual.widgets import Label

from labctl.core.published_state import PublishedState
from labctl.ui.console.acts import ROLES
from labctl.ui.console.form import Answer, Form, Line, Options, Unfit
from labctl.ui.console.link import Json


class AskSession(Form):
    """Who is here in which role, and the checks of an evening's opening."""

    ok_text = "Open"

    def __init__(self, state: PublishedState, who: str) -> None:
        super().__init__()
        self._checks: Sequence[str] = state["checks"]
        self.of, self.overtaken = lambda state: state["session"], lambda state, about: "another console opened it"
        self.title_text = f"Open the session: who is here{', and is the cell as it should be' if self._checks else ''}?"
        self._who = who

    def fields(self) -> Iterator[Widget]:
        yield from role_fields(dict.fromkeys(ROLES, self._who))
        if self._checks:
            yield Label("checked and in order")
            yield Options([(check, check) for check in self._checks], id="checks", many=True)

    def answer(self) -> Answer:
        roles = roles_of(self)
        missing = [check for check in self._checks if check not in self.ticked("checks")]
        if missing:
            raise Unfit("checks", f"not yet answered: {', '.join(missing)}")
        return {"people": entries(roles), "checks": {check: True for check in self._checks}}


class AskPeople(Form):
    """Who is here from now on, in which role, and who sits at this console; the session goes on."""

    title_text = "Who is here from now on? (the session goes on)"
    ok_text = "Change"

    def __init__(self, state: PublishedState, who: str) -> None:
        super().__init__()
        self._people = {person["id"]: list(person["roles"]) for person in state["people"]}
        self._who = who
        self.of = lambda state: (state["session"], str(state["people"]))
        self.overtaken = lambda state, about: "who is here has changed meanwhile; J shows who"
        self._named: dict[str, list[str]] = {}  # new people that were shown once, for whoever mistyped

    def fields(self) -> Iterator[Widget]:
        yield from role_fields({role: self._taken(role) for role in ROLES})
        yield Label("who sits at this console (one of these ids)")
        yield Line(self._who, id="who")

    def _taken(self, role: str) -> str:
        return ", ".join(person for person, roles in self._people.items() if role in roles)

    def answer(self) -> Answer:
        """`people` as the order has them, and `who` acts at this console."""
        roles, who = roles_of(self), self.needed("who", "the id of who sits here")
        if who not in roles:
            raise Unfit("who", f"{who} is in no role above; here are {', '.join(roles)}")
        new = {person: list(taken) for person, taken in roles.items() if person not in self._people}
        if new and new != self._named:
            self._named = new
            text = "; ".join(f"{person} as {', '.join(taken)}" for person, taken in new.items())
            first = next(iter(new.values()))[0]
            raise Unfit(f"role-{first}", f"new here: {text}. Ctrl-S again if that is the id; else correct it")
        for person, taken in roles.items():  # roles that this form does not ask for stay
            taken += [role for role in self._people.get(person, ()) if role not in ROLES]
        return {"people": entries(roles), "who": who}


def role_fields(taken: Mapping[str, str]) -> Iterator[Widget]:
    """A line for each role, filled with ids; the answer is `roles_of`."""
    for role in ROLES:
        yield Label(f"{role} (ids that are no names, several with commas)")
        yield Line(taken[role], id=f"role-{role}", placeholder="an id such as p07")


def roles_of(form: Form) -> dict[str, list[str]]:
    """Who is here in which roles. Raises Unfit without an operator."""
    roles: dict[str, list[str]] = {}
    for role in ROLES:
        for person in filter(None, (part.strip() for part in form.text(f"role-{role}").split(","))):
            taken = roles.setdefault(person, [])
            taken += [role] if role not in taken else []
    if not any("operator" in taken for taken in roles.values()):
        raise Unfit("role-operator", "nobody is the operator; give at least one id")
    return roles


def entries(roles: Mapping[str, Sequence[str]]) -> list[Json]:
    """As an order names people."""
    return [{"id": person, "roles": list(taken)} for person, taken in roles.items()]
