"""What the outputs of a traced function are: gradients of which tensors."""

from __future__ import annotations

from tpc.body import Body
from tpc.outcome import Made, Source


def output_labels(body: Body) -> dict[int, str]:
    """Names for outputs that are gradients: those the function left in `.grad`, then those that leave by the reverse program."""
    labels = {}
    for source, made in body.outcome.grads:
        if isinstance(made, Made) and (name := _name(body, source)):
            labels[made.output] = f"{name}.grad"
    given = [source for (_, source), there in zip(body.outcome.sought, _present(body), strict=False) if there]
    for number, source in enumerate(given, len(body.outputs)):
        if name := _name(body, source):
            labels[number] = f"gradient of {name}"
    return labels


def _present(body: Body) -> tuple[bool, ...]:
    """Which of the sought edges get a gradient."""
    return next((reverse.present for reverse in body.reverses.values()), ())


def _name(body: Body, source: Source) -> str | None:
    """The name of the input that a gradient belongs to."""
    for known, name in zip(body.outcome.sources, body.names, strict=False):
        if _same(source, known):
            return f"%{name}" if name else None
    return None


def _same(source: Source, known: Source) -> bool:
    if source.kind == "outside":
        return known.kind == "storage" and known.ref is source.ref._storage
    return source.kind == known.kind == "arg" and source.ref == known.ref
