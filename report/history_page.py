"""The history as one self-contained page, in the manner of a run's report."""

from __future__ import annotations

from report import history_words
from report.changes import LEAST_CHANGE, LEAST_VALUES, SPREAD_KNOWN, WINDOW
from report.history import History, Series

MOST_FIGURES = 8
MOST_ROWS = 200
MOST_SHIFTS = 60


def page(history: History) -> bytes:
    """Same runs, same bytes."""
    from importlib.resources import files as resources

    import jinja2

    from report import words
    from report.drawing import PALETTE, colours
    from report.figure_history import history_figure

    palette = colours(sorted({each.identity["platform"] for each in history.series}))
    drawn = _drawn(history)
    folder = resources("report")
    engine = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    template = engine.from_string(folder.joinpath("history.html.j2").read_text(encoding="utf-8"))
    text = template.render(
        css=folder.joinpath("page.css").read_text(encoding="utf-8"),
        history=history,
        heading=history_words.heading(history),
        said=history_words.sentences(history),
        rows=[(each, history_words.row(each)) for each in history_words.timed(history)[:MOST_ROWS]],
        untimed=history_words.untimed(history),
        figures=[
            (each, history_figure(each, name=f"history_{number}", palette=palette))
            for number, each in enumerate(drawn, 1)
        ],
        could=len(history_words.timed(history)),
        shifts=history_words.shifts(history),
        place={name: PALETTE.index(colour) for name, (colour, _) in palette.items()},
        words=words,
        most_rows=MOST_ROWS,
        most_shifts=MOST_SHIFTS,
        window=WINDOW,
        least_values=LEAST_VALUES,
        least_change=LEAST_CHANGE,
        spread_known=SPREAD_KNOWN + 1,
    )
    return text.encode()


def _drawn(history: History) -> list[Series]:
    """Those of the newest run that changed first, then the others that changed, then the rest; all in that order."""
    timed = history_words.timed(history)
    told = [each for each in timed if each.newest.standing in ("slower", "faster")]
    moved = [each for each in timed if each.shifts and each not in told]
    here = [each for each in timed if each.newest.standing not in ("absent", "no time")]
    ordered: list[Series] = []
    for each in [*told, *moved, *here, *timed]:
        if not any(each is one for one in ordered):
            ordered.append(each)
    return ordered[:MOST_FIGURES]
