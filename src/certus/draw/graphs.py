"""Hypergraphs and forests: vertices in layers above what they are made of, edges as dots with a line to every tail."""

from collections.abc import Sequence

from certus.draw.svg import Canvas, Picture, shortened, width_of
from certus.errors import InvalidInput

MOST = 400  # edges of a picture that anybody reads
LAYER, GAP, MARGIN = 76.0, 22.0, 20.0


def hypergraph(
    n_vertices: int,
    edges: Sequence[tuple[int, Sequence[int]]],
    *,
    names: Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
    used: Sequence[int] = (),
    title: str = "Hypergraph",
) -> Picture:
    """An acyclic hypergraph, with a hyperpath in it.

    Parameters
    ----------
    n_vertices : int
    edges : sequence of (head, tails)
        Every tail is a vertex that comes before the head.
    names : sequence of str, optional
        Of the vertices; by default their numbers.
    labels : sequence of str, optional
        Of the edges: what they yield or score.
    used : sequence of int
        Edges of the hyperpath, drawn bold.
    """
    if len(edges) > MOST:
        raise InvalidInput(
            f"the hypergraph has {len(edges)} edges; at most {MOST} can be drawn. Draw a hyperpath of it."
        )
    shown = [str(v) if names is None else shortened(names[v], 18) for v in range(n_vertices)]
    layers = _layers(n_vertices, edges)
    wide = [max(width_of(name, 12) + 14, 26.0) for name in shown]
    of_vertex: list[list[int]] = [[] for _ in range(n_vertices)]
    for e, (head, _) in enumerate(edges):
        of_vertex[head].append(e)
    text = [shortened(labels[e], 22) if labels is not None else "" for e in range(len(edges))]
    room = [max(w, sum(width_of(text[e], 10) + 18 for e in of_vertex[v])) + GAP for v, w in enumerate(wide)]
    order = _ordered(layers, edges)
    x, y, length = _placed(order, room)
    canvas, best = Canvas(), set(map(int, used))
    bold = {edges[e][0] for e in best} | {v for e in best for v in edges[e][1]}
    for v, own in enumerate(of_vertex):
        sizes = [width_of(text[e], 10) + 18 for e in own]
        at = x[v] - sum(sizes) / 2
        for e, size in zip(own, sizes, strict=True):
            dot, tails = (at + size / 2, y[v] + 34), [(x[u], y[u]) for u in edges[e][1]]
            _edge(canvas, e, dot, (x[v], y[v]), tails, text[e], e in best)
            at += size
    for v in range(n_vertices):
        if of_vertex[v] or any(v in tails for _, tails in edges):
            canvas.box(x[v] - wide[v] / 2, y[v] - 11, wide[v], 22, "tint" if v in bold else "panel", data_part=v)
            canvas.text(x[v], y[v] + 4, shown[v], "ink l b" if v in bold else "soft l")
    said = "; ".join(
        f"{shown[edges[e][0]]} from {', '.join(shown[v] for v in edges[e][1]) or text[e]}" for e in sorted(best)
    )
    high = MARGIN * 2 + len(order) * LAYER
    return canvas.picture(length + 2 * MARGIN, high, title, said)


def _placed(order: Sequence[Sequence[int]], room: Sequence[float]) -> tuple[list[float], list[float], float]:
    """Where vertices stand, layers centred and the first one at the bottom; and how long the longest layer is."""
    lengths = [sum(room[v] for v in layer) for layer in order]
    longest = max(lengths, default=0.0)
    x, y = [0.0] * len(room), [0.0] * len(room)
    for k, (layer, length) in enumerate(zip(order, lengths, strict=True)):
        at = MARGIN + (longest - length) / 2
        for v in layer:
            x[v], y[v] = at + room[v] / 2, MARGIN + 12 + (len(order) - 1 - k) * LAYER
            at += room[v]
    return x, y, longest


def _edge(
    canvas: Canvas,
    e: int,
    middle: tuple[float, float],
    head: tuple[float, float],
    tails: list[tuple[float, float]],
    text: str,
    best: bool,
) -> None:
    classes = "first bold" if best else "faint"
    (mx, my), (hx, hy) = middle, head
    canvas.path(f"M{mx:.1f} {my:.1f}Q{mx:.1f} {hy + 18:.1f} {hx:.1f} {hy + 11:.1f}", classes, data_part=f"e{e}")
    for tx, ty in tails:
        canvas.path(f"M{mx:.1f} {my:.1f}Q{mx:.1f} {my + 18:.1f} {tx:.1f} {ty - 11:.1f}", classes)
    canvas.dot(mx, my, 3.0, "blue" if best else "soft", title=text or f"edge {e}")
    if text:
        canvas.text(mx, my + 13, text, "ink s halo" if best else "soft s halo")


def _layers(n_vertices: int, edges: Sequence[tuple[int, Sequence[int]]]) -> list[int]:
    """How many edges the longest way down from each vertex has."""
    layer = [0] * n_vertices
    for head, tails in sorted(edges, key=lambda item: item[0]):
        for tail in tails:
            layer[head] = max(layer[head], layer[tail] + 1)
    return layer


def _ordered(layer: list[int], edges: Sequence[tuple[int, Sequence[int]]]) -> list[list[int]]:
    """The vertices of each layer, each near the middle of what it is made of."""
    out: list[list[int]] = [[] for _ in range(max(layer, default=-1) + 1)]
    tails: list[list[int]] = [[] for _ in layer]
    for head, below in edges:
        tails[head].extend(below)
    middle = [0.0] * len(layer)
    for k in range(len(out)):
        members = [v for v, at in enumerate(layer) if at == k]
        for v in members:
            middle[v] = sum(middle[u] for u in tails[v]) / len(tails[v]) if tails[v] else float(v)
        out[k] = sorted(members, key=lambda v: (middle[v], v))
    return out
