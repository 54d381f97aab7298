"""For the reference: questions that a problem answers in its own way are described as in the interface.

A class overrides ``kbest`` without saying again what it is for; mkdocstrings would leave such a method out. Here it
gets the description that ``certus.Problem`` or the batches have.
"""

from typing import Any

import griffe

CONTRACTS = ("problem.Problem", "batch.Batch", "hypergraph.dynamic_program.DynamicProgram")


class InheritedDescriptions(griffe.Extension):
    """Descriptions of the contracts, for members of the same name that have none."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        if pkg.name != "certus":
            return
        known: dict[str, str] = {}
        for path in CONTRACTS:
            for name, member in pkg[path].members.items():
                if not name.startswith("_") and not member.is_alias and member.docstring is not None:
                    known.setdefault(name, member.docstring.value)
        _describe(pkg, known)


def _describe(owner: Any, known: dict[str, str]) -> None:
    for name, member in owner.members.items():
        if member.is_alias:
            continue
        if member.is_module or member.is_class:
            _describe(member, known)
        elif owner.is_class and name in known and member.docstring is None:
            member.docstring = griffe.Docstring(known[name], parent=member)
