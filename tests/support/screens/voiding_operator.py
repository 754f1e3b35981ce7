"""A simulated operator who voids the first episode that a machine ended, as soon as the console lets them."""

from __future__ import annotations

from labctl.config.options import NoOptions
from labctl.core.published_state import PublishedState
from labctl.drivers.sim.operator import Order, PromptOperator


class VoidingOperator(PromptOperator):
    def decide(self, state: PublishedState) -> Order | None:
        evidence = state["evidence"]
        if "void" in state["allowed"] and evidence is not None:
            return self._command("void", reason="arm_lost", evidence=evidence)
        return super().decide(state)

    def delay_ns(self, verb: str) -> int:
        return 0 if verb == "void" else super().delay_ns(verb)


def build(options: NoOptions) -> VoidingOperator:
    return VoidingOperator()
