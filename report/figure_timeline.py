"""Which task each slot of each executor did when: a row a slot, for the first configurations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from models.timeline import TaskSpan
from report.drawing import (
    FITTED,
    INK,
    MUTED,
    PAPER,
    SECONDS,
    TOLD,
    Figure,
    Palette,
    Spec,
    Table,
    data,
    figure,
    layered,
    telling,
    texts,
)
from report.timeline import Timeline
from report.words import counted, label, listed, percent, seconds

MOST_PANELS = 3
MOST_SLOTS = 16  # of a panel
MOST_TASKS = 600  # of a panel
PITCH, HEAD = 17, 32  # pixels of a slot, and of a panel's caption with the gap above it
LOAD, OTHER = "#ddcc77", "#999b9d"


def timeline_figure(
    timelines: Sequence[Timeline], *, names: Sequence[str], name: str, palette: Palette
) -> Figure | None:
    """In the order given, `names` being what tells configurations apart; what is not shown is said."""
    if not timelines:
        return None
    shown = timelines[:MOST_PANELS]
    table = Table(
        heads=(
            "configuration",
            "trial",
            "executor",
            "slots",
            "tasks",
            "in passes",
            "loading",
            "busy during the passes",
        ),
        rows=tuple(row for each in timelines for row in _rows(each, label(each.row, varying=names))),
    )
    said = _sentence(shown, len(timelines), names)
    return figure(name, said, table, lambda width: _chart(shown, names, palette, width))


def _rows(each: Timeline, text: str) -> list[tuple[str, ...]]:
    busy = each.busy()
    rows: list[tuple[str, ...]] = []
    for executor in each.executors:
        mine = [task for task in each.tasks if task.executor == executor]
        times = {
            kind: sum(task.ended - task.launched for task in mine if task.kind == kind) for kind in ("pass", "load")
        }
        rows.append(
            (
                text,
                str(each.trial),
                executor,
                str(len({task.slot for task in mine})),
                str(len(mine)),
                seconds(times["pass"], 3),
                seconds(times["load"], 3),
                percent(busy[executor], 2) if executor in busy else "",
            )
        )
    return rows


def _sentence(shown: Sequence[Timeline], there: int, names: Sequence[str]) -> str:
    filled, empty = [], []
    for each in shown:
        busy, text = each.busy(), label(each.row, varying=names)
        if busy:
            low, high = percent(min(busy.values()), 2), percent(max(busy.values()), 2)
            filled.append(f"{low if low == high else low.removesuffix(' %') + ' to ' + high} in {text}")
        else:
            empty.append(text)
    share = "Share of the slots' time that tasks fill, from the first pass to the last"
    said = f"{share}: {'; '.join(filled)}." if filled else ""
    said += f" No pass is there of {listed(empty)}." if empty else ""
    cut = (
        ""
        if there <= len(shown)
        else f" {len(shown)} of {there} configurations shown; timeline.csv has those whose event logs were read."
    )
    hidden = sum(max(0, len(_slots(each)) - MOST_SLOTS) for each in shown)
    cut += f" {counted(hidden, 'slot')} more than fit are left out." if hidden else ""
    late = sum(max(0, len(each.tasks) - MOST_TASKS) for each in shown)
    cut += f" The last {counted(late, 'task')} are left out." if late else ""
    return f"{said}{cut}".strip()


def _slots(each: Timeline) -> list[tuple[str, int]]:
    return [
        (executor, slot)
        for executor in each.executors
        for slot in sorted({task.slot for task in each.tasks if task.executor == executor})
    ]


def _chart(shown: Sequence[Timeline], names: Sequence[str], palette: Palette, width: int) -> Spec:
    bars: list[dict[str, Any]] = []
    captions: list[dict[str, Any]] = []
    slots: list[dict[str, Any]] = []
    top = 0.0
    for each in shown:
        rows = _slots(each)[:MOST_SLOTS]
        captions.append({"y": top + 14, "text": label(each.row, varying=names)})
        places = {slot: top + HEAD + PITCH * number for number, slot in enumerate(rows)}
        slots += [{"y": places[slot], "text": _slot_name(slot, rows)} for slot in rows]
        colour = palette[each.row["platform"]][0]
        for task in sorted(each.tasks, key=lambda task: task.launched)[:MOST_TASKS]:
            if (task.executor, task.slot) in places:
                bars.append(
                    {
                        "y": places[task.executor, task.slot],
                        "from": task.launched - each.began,
                        "to": task.ended - each.began,
                        **_look(task, colour),
                        **telling(_told(task, places_of=rows)),
                    }
                )
        top += HEAD + PITCH * len(rows) + 2
    height = top + 24
    gutter = 7.0 * max(len(slot["text"]) for slot in slots) + 8
    last = max(bar["to"] for bar in bars) or 1.0
    x = alt.X(
        "from:Q",
        scale=alt.Scale(domain=[0, last * 1.01], range=[gutter, width - 14], nice=False),
        axis=alt.Axis(
            labelExpr=SECONDS, title="seconds since the first task began", tickCount=6 if width > 500 else 4, grid=True
        ),
    )
    y = alt.Y("y:Q", scale=alt.Scale(domain=[height, 0], nice=False, zero=False), axis=None)
    layers: list[Any] = [
        alt.Chart(data(bars))
        .mark_bar(height=PITCH - 4, stroke=PAPER, strokeWidth=0.6)
        .encode(
            x=x,
            x2=alt.X2("to:Q"),
            y=y,
            color=alt.Color("colour:N", scale=None),
            opacity=alt.Opacity("faint:Q", scale=None),
            description=TOLD,
        )
    ]
    layers += texts(captions, x=alt.XValue(0), y=y, ink=INK, align="left", fontSize=13, limit=width - 10)
    layers += texts(slots, x=alt.XValue(0), y=y, ink=MUTED, align="left")
    layers += _legend(shown, palette, y=y, at=height - 12)
    return layered(layers, width=width, height=height + 44, autosize=FITTED)


def _look(task: TaskSpan, colour: str) -> dict[str, Any]:
    if task.kind == "pass":
        # Epochs alternate, so that one is told from the next.
        return {"colour": colour, "faint": 1.0 if (task.epoch or 0) % 2 else 0.6}
    return {"colour": LOAD if task.kind == "load" else OTHER, "faint": 1.0}


def _told(task: TaskSpan, *, places_of: Sequence[tuple[str, int]]) -> str:
    what = {"pass": f"epoch {task.epoch}", "load": "loading"}.get(task.kind, "another task")
    took = seconds(task.ended - task.launched, 3)
    return f"executor {_slot_name((task.executor, task.slot), places_of)}: {what}, {took}"


def _slot_name(slot: tuple[str, int], rows: Sequence[tuple[str, int]]) -> str:
    executor, number = slot
    several = sum(other == executor for other, _ in rows) > 1
    return f"{executor}, slot {number + 1}" if several else executor


def _legend(shown: Sequence[Timeline], palette: Palette, *, y: Any, at: float) -> list[Any]:
    colour = palette[shown[0].row["platform"]][0]
    kinds = {task.kind for each in shown for task in each.tasks}
    entries = [("load", "loading", LOAD, 1.0), ("pass", "odd epochs", colour, 1.0)]
    entries += [("pass", "even epochs", colour, 0.6), ("other", "other", OTHER, 1.0)]
    left, layers = 0.0, []
    for kind, text, ink, faint in entries:
        if kind in kinds:
            place = data([{"y": at, "text": text}])
            mark = alt.Chart(place).mark_square(size=110, color=ink, opacity=faint)
            words = alt.Chart(place).mark_text(align="left", baseline="middle", fontSize=12, color=MUTED)
            layers += [
                mark.encode(x=alt.XValue(left + 6), y=y),
                words.encode(x=alt.XValue(left + 17), y=y, text=alt.Text("text:N")),
            ]
            left += 17 + 6.9 * len(text) + 14
    return layers
