"""How an episode is laid out on the screen, or two of them side by side.

May not: log data, or name a view whose data is not there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import rerun as rr
import rerun.blueprint as rrb

from labctl.clock import SECOND
from labctl.ui.rerun.episode_view import (
    ACTION,
    POLICY,
    EpisodeView,
    asked,
    depth_place,
    hand_of,
    measured,
    place_of,
    sensor_plots,
)
from labctl.ui.rerun.parts import TIMELINE, UTC, drawn_at
from labctl.ui.rerun.robots import robots_of

MARGIN_S = 1.0
LIVE_S = 30.0
PICTURES = ("cameras", "depth", "scene")
JOINT_PLOTS = (("q", "joints, rad"), ("dq", "speeds, rad/s"), ("tau", "torques, N m"))


def blueprint(views: Mapping[str, EpisodeView]) -> Any:
    """One episode: the cell over the cameras on the left; timelines, curves, words on the right. Two: a column each."""
    axis = _axis(list(views.values()))
    if len(views) == 1:
        ((prefix, view),) = views.items()
        left = [(3.0, _cell(prefix, view)), *((2.0, row) for row in _pictures(prefix, view))]
        body = rrb.Horizontal(_stack(left), _stack(_evidence(prefix, view, axis)), column_shares=[5, 4])
    else:
        body = rrb.Horizontal(*(_column(prefix, view, axis) for prefix, view in views.items()))
    return _alone(body, rrb.TimePanel(timeline=TIMELINE, state="collapsed", play_state="playing"))


def live_blueprint(cameras: Sequence[str], *, opens: bool, axes: int) -> Any:
    """A running campaign: the cell over the cameras, the last half minute of the robot, and what the run says. opens:
    its hand has openings alone; axes: how many.
    """
    boundary = rr.TimeRangeBoundary.cursor_relative
    recent = rr.VisibleTimeRange(UTC, start=boundary(seconds=-LIVE_S), end=boundary(seconds=0.0))

    def plot(entity: str, name: str, legend: bool) -> Any:
        shown = rrb.PlotLegend(corner="lefttop", visible=legend)
        return rrb.TimeSeriesView(origin=entity, name=name, time_ranges=recent, plot_legend=shown)

    pictures = rrb.Horizontal(*(rrb.Spatial2DView(origin=f"cameras/{name}", name=name) for name in cameras))
    cell = rrb.Spatial3DView(origin="world", name="cell", eye_controls=_eye())
    columns = rrb.TextLogColumns(timeline_columns=[UTC], text_log_columns=["LogLevel", "Body"])
    right = rrb.Vertical(
        rrb.TextDocumentView(origin="about", name="now"),
        plot("joints/q", "joints, rad", True),
        plot("gripper", "gripper opening, mm" if opens else "hand", not opens or axes > 1),
        rrb.StateTimelineView(origin="lanes", name="what happened"),
        rrb.TextLogView(origin="events", name="said", columns=columns),
        row_shares=[2.6, 3, 2, 2, 2],
    )
    left = rrb.Vertical(cell, pictures, row_shares=[3, 2]) if cameras else cell
    body = rrb.Horizontal(left, right, column_shares=[5, 4])
    return _alone(body, rrb.TimePanel(timeline=UTC, state="collapsed", play_state="following"))


def _alone(body: rrb.Horizontal, time: rrb.TimePanel) -> rrb.Blueprint:
    """Views and a time line, without the viewer's other panels."""
    hidden = rrb.SelectionPanel(state="hidden"), rrb.BlueprintPanel(state="hidden")
    return rrb.Blueprint(body, time, *hidden, auto_views=False)


def _column(prefix: str, view: EpisodeView, axis: Any) -> Any:
    """One of several episodes: the same views in the same order in every column."""
    pictures = [(2.6, row) for row in _pictures(prefix, view)]
    return _stack([(3.4, _cell(prefix, view, view.title)), *pictures, *_evidence(prefix, view, axis, narrow=True)])


def _stack(rows: list[tuple[float, Any]]) -> Any:
    return rrb.Vertical(*(row for _, row in rows), row_shares=[share for share, _ in rows])


def _cell(prefix: str, view: EpisodeView, name: str = "cell") -> Any:
    (_, own), *others = robots_of(view, prefix)
    arm = drawn_at(own, prefix)
    contents = ["$origin/**", *([f"/{arm}/**"] if arm and prefix else []), *(f"/{behind}/**" for behind, _ in others)]
    return rrb.Spatial3DView(origin=_at(prefix, "world"), contents=contents, name=name, eye_controls=_eye(view))


def _eye(view: EpisodeView | None = None) -> Any:
    """From where the cell is looked at: of two robots so far that both are seen, at the middle between their bases."""
    eye, target = np.array([1.08, -1.12, 0.92]), np.array([0.17, 0.08, 0.38])
    if view is not None and view.second is not None:
        middle = np.array(view.second.base_m) / 2
        target, eye = target + middle, target + middle + (eye - target) * (1.0 + float(np.linalg.norm(middle)))
    return rrb.EyeControls3D(position=tuple(eye.tolist()), look_target=tuple(target.tolist()), eye_up=(0, 0, 1))


def _pictures(prefix: str, view: EpisodeView) -> list[Any]:
    cameras = [
        rrb.Spatial2DView(origin=_at(prefix, place_of(name, video)), name=name) for name, video in view.videos.items()
    ]
    depth = [
        rrb.Spatial2DView(origin=_at(prefix, depth_place(name, video)), name=f"{name}, depth")
        for name, video in view.videos.items()
        if video.depth is not None
    ]
    photos = [rrb.Spatial2DView(origin=_at(prefix, f"photos/{name}"), name=name) for name in view.photos]
    rows = [
        rrb.Horizontal(*row, name=name) for name, row in zip(PICTURES, (cameras, depth, photos), strict=True) if row
    ]
    return [rrb.Tabs(*rows) if len(rows) > 1 else rows[0]] if rows else []


def _evidence(prefix: str, view: EpisodeView, axis: Any, *, narrow: bool = False) -> list[tuple[float, Any]]:
    """(share of the height, view) from what happened down to the words for it; when narrow, all plots share a row."""
    rows: list[tuple[float, Any]] = []
    if view.timelines:
        timelines = rrb.StateTimelineView(origin=_at(prefix, "lanes"), name="what happened", time_view=axis)
        rows.append((0.8 + 0.45 * len(view.timelines), timelines))
    plots = _plots(prefix, view, axis)
    if narrow:
        together = [plot for _, row in plots for plot in row]
        rows += [(1.8, rrb.Tabs(*together))] if together else []
    else:
        rows += [(share, rrb.Tabs(*row) if len(row) > 1 else row[0]) for share, row in plots]
    about = rrb.TextDocumentView(origin=_at(prefix, "about"), name="about")
    columns = rrb.TextLogColumns(timeline_columns=[TIMELINE], text_log_columns=["LogLevel", "Body"])
    journal = rrb.TextLogView(origin=_at(prefix, "events"), name="journal", columns=columns)
    words = [one for one, there in ((about, view.facts), (journal, view.events)) if there]
    if words:
        rows.append((2.0, rrb.Horizontal(*words, column_shares=[3, 4][: len(words)])))
    return rows


def _plots(prefix: str, view: EpisodeView, axis: Any) -> list[tuple[float, list[Any]]]:
    """(share of the height, plots that take turns in one place), of what there is; those of a second robot take turns
    with the first's.
    """

    def plot(prefix: str, entity: str, name: str, legend: bool = True) -> Any:
        shown = rrb.PlotLegend(corner="lefttop", visible=legend)
        return rrb.TimeSeriesView(origin=_at(prefix, entity), name=name, axis_x=axis, plot_legend=shown)

    rows: list[tuple[float, list[Any]]] = []
    robots = robots_of(view, prefix)
    own = robots[0][1]
    joints = measured(own, "q").size > 0
    if joints:
        rows.append((1.8, []))
        rows.append((1.1, []))
    if ACTION in own.streams:
        rows.append((1.4, []))
    for at, one in robots:
        of = f"{one.of}: " if one.of else ""
        places = iter(rows)
        if joints:
            next(places)[1].extend(
                plot(at, f"joints/{what}", of + name) for what, name in JOINT_PLOTS if measured(one, what).size
            )
            hand = "gripper opening, mm" if hand_of(one) == ("gripper",) else "hand"
            next(places)[1].append(plot(at, "gripper", of + hand, legend=hand == "hand"))
        if ACTION in one.streams:
            next(places)[1].extend(plot(at, f"actions/{part}", f"{of}asked of {title}") for part, title in asked(one))
    if sensors := sensor_plots(own):
        rows.append((1.2, [plot(prefix, entity, title) for _, entity, title, _ in sensors]))
    if POLICY in own.streams:
        name = "policy's answer after capture and after request, ms"
        rows.append((1.2, [plot(prefix, "policy", name, legend=False)]))
    return rows


def _axis(views: Sequence[EpisodeView]) -> Any:
    """From the first sample to the last one of all views, in seconds since go."""
    edges = [
        (int(edge) - view.start_ns) / SECOND
        for view in views
        for stream in view.streams.values()
        if len(stream.t_ns)
        for edge in (stream.t_ns[0], stream.t_ns[-1])
    ]
    low, high = min(edges, default=0.0) - MARGIN_S, max(edges, default=0.0) + MARGIN_S
    absolute = rr.TimeRangeBoundary.absolute
    return rrb.TimeAxis(view_range=rr.TimeRange(start=absolute(seconds=low), end=absolute(seconds=high)))


def _at(prefix: str, entity: str) -> str:
    return f"{prefix}/{entity}" if prefix else entity
