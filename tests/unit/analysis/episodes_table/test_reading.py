"""An episodes table is read as the interface has it; what breaks a rule is one line with line, found and allowed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from labctl.analysis.episodes_table.reading import read_either, read_episodes
from labctl.analysis.episodes_table.table import EpisodesTable, table_from_rows
from labctl.analysis.table import Table
from labctl.errors import TableError

GOOD = "block,arm,success,score,time_s\nb2,x,1,1,10.5\nb2,y,0,.25,\nb1,x,0,0,\nb1,y,1,1,3\n"


def csv(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "t.csv"
    path.write_text(text)
    return path


def refused(tmp_path: Path, text: str, *, extra: bool = False) -> str:
    with pytest.raises(TableError) as caught:
        read_either(csv(tmp_path, text), extra=extra)
    said = str(caught.value)
    assert "\n" not in said
    return said.removeprefix(f"{tmp_path}/t.csv:")


def test_blocks_stand_in_order_of_first_appearance_and_a_missing_number_is_nan(tmp_path: Path) -> None:
    table = read_episodes(csv(tmp_path, GOOD))
    assert table.blocks == ("b2", "b1") and table.arms == ("x", "y")
    assert np.array_equal(table.grid("score"), [[1, 0.25], [0, 1]])
    assert np.array_equal(table.grid("time_s"), [[10.5, np.nan], [np.nan, 3]], equal_nan=True)


def test_the_two_tables_are_told_apart_by_their_columns(tmp_path: Path) -> None:
    assert isinstance(read_either(csv(tmp_path, GOOD)), EpisodesTable)
    assert isinstance(read_either(csv(tmp_path, "episode,arm,object,kind,time_s\ne,x,o,success,2\n")), Table)
    said = refused(tmp_path, "trial,policy,ok\n1,x,1\n")
    assert said.startswith("1: columns trial, policy, ok make no table that is known: an operations table needs")
    assert "an episodes table block, arm and one of success, score, time_s" in said


def test_parquet_holds_the_same_table(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {"block": ["b", "b"], "arm": ["x", "y"], "success": [True, None], "score": [1.0, 0.5]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "t.parquet")
    table = read_episodes(tmp_path / "t.parquet")
    assert np.array_equal(table.grid("success"), [[1, np.nan]], equal_nan=True)
    columns["score"] = [1.0, 1.5]
    parquet.write_table(pyarrow.table(columns), tmp_path / "t.parquet")
    with pytest.raises(TableError, match=r"t.parquet:2: score is '1.5'; allowed is a number from 0 to 1"):
        read_episodes(tmp_path / "t.parquet")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("block,arm,success\nb,x,1\nb,x,0\n", "3: block 'b' has arm 'x' here and in line 2; at most one row an arm"),
        ("block,arm,success\nb,x,2\n", "2: success is '2'; allowed is 0 or 1, or empty; write 1 where"),
        ("block,arm,score\nb,x,40\n", "2: score is '40'; allowed is a number from 0 to 1, or empty; divide percent"),
        ('block,arm,score\nb,x,"0,5"\n', "2: score is '0,5'; allowed is a number from 0 to 1, or empty; write a dec"),
        ("block;arm;score\nb;x;0,5\n", "1: values are apart by semicolons; save the file with commas, and dec"),
        ("block,arm,time_s\nb,x,3\n", "1: time_s says when, not whether: it needs success"),
        ("block,arm,score,time_s\nb,x,1,3\n", "1: time_s needs success beside it"),
        ("block,arm,success,score\nb,x,,\n", "2: success and score are both empty; say how the episode went"),
        ("block,arm,success\n,x,1\n", "2: block is empty; every row names its block"),
        ("block,arm,success,notes\nb,x,1,ok\n", "1: unknown column 'notes'; known are block, arm, success, score"),
        ("block,arm,success,position\nb,x,1,0\n", "2: position is '0'; allowed is a whole number, 1 or more"),
        ("block,arm,success,position\nb,x,1,1\nb,y,0,1\n", "3: block 'b' has position 1 here and in line 2; each"),
        ("block,arm,success,site\nb,x,1,s\nb,y,0,t\n", "3: block 'b' has site 't' here and 's' in line 2; a block has"),
        ("block,arm,success,time_s,budget_s\nb,x,1,90,60\n", "2: time_s is 90, beyond its budget_s of 60; correct"),
        ("block,arm,success,stage_2_s\nb,x,1,3\n", "1: column stage_1_s is missing below stage_2_s; number stages"),
        ("block,arm,success,stage_1_s,stage_2_s\nb,x,1,9,3\n", "2: stages are reached at 9, 3 s; a stage comes after"),
        ("block,arm,success,stage,stage_1_s\nb,x,0,0,3\n", "2: stage is 0, but stage_1_s says when a later one was"),
        ("block,arm,success,moved,staged\nb,x,0,3,2\n", "2: moved is 3 of 2 staged; correct one"),
        ("block,arm,success\n", " no episode that counts below the header; give one row for each episode"),
        ("block,arm,success,void\nb,x,1,1\n", " no episode that counts below the header; give those that are not"),
        ("block,arm,success,stage\nb,x,1,1e9\n", "2: stage is '1e9'; allowed is a whole number, 0 to 99"),
        ("block,arm,success,stage_100_s\nb,x,1,3\n", "1: column stage_100_s is beyond the 99 stages that a task may"),
        ('block,arm,success\nb,"x\ny",1\n', "2: arm is 'x\\ny', with a line break or another control character"),
        ("block,arm,success\nb,\x1b[31mx,1\n", "2: arm is '\\x1b[31mx', with a line break or another control char"),
        ("block,arm,success,success\nb,x,1,1\n", "1: column 'success' appears 2 times; keep one"),
    ],
)  # fmt: skip
def test_what_breaks_a_rule_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    assert refused(tmp_path, text).startswith(said)


def test_a_column_of_ones_own_needs_extra(tmp_path: Path) -> None:
    path = csv(tmp_path, "block,arm,success,notes\nb,x,1,ok\n")
    assert isinstance(read_either(path, extra=True), EpisodesTable)


PREFERENCE = "block,arm,success,position,compared,preferred,void\n"


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("b,x,1,1,x|y,z,\nb,y,0,2,x|y,z,\n", "2: preferred is 'z'; allowed is x, y, tie or empty"),
        ("b,x,1,1,x|z,x,\nb,y,0,2,x|z,x,\n", "2: compared names 'z', but the arms of block 'b' are others"),
        ("b,x,1,1,x|y,x,\nb,y,0,2,x|y,x,1\n", "2: compared names 'y', but its episode is void; a preference is"),
        ("b,x,1,2,x|y,x,\nb,y,0,1,x|y,x,\n", "2: compared is 'x|y', but 'y' ran before 'x' by position"),
        ("b,x,1,1,,x,\nb,y,0,2,,x,\n", "2: preferred is 'x' without compared; name both arms there"),
        ("b,tie,1,1,tie|y,y,\nb,y,0,2,tie|y,y,\n", "2: compared is 'tie|y', and 'tie' stands for no preference"),
        ("b,x,1,1,x,x,\nb,y,0,2,x,x,\n", "2: compared is 'x'; allowed are two arms, the one that ran first"),
    ],
)
def test_a_preference_is_of_two_episodes_of_its_block_that_count(tmp_path: Path, rows: str, said: str) -> None:
    assert refused(tmp_path, PREFERENCE + rows).startswith(said)


def test_a_void_episode_is_left_out_and_may_have_been_run_again(tmp_path: Path) -> None:
    table = read_episodes(csv(tmp_path, "block,arm,success,void\nb,x,0,1\nb,x,1,0\nb,y,0,\n"))
    assert np.array_equal(table.grid("success"), [[1, 0]]) and table.voids == {"x": 1}


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("b1,x,1,light,plain\n", "2: base 'plain' is no condition of this table; its conditions are light"),
        ("b1,x,1,p,q\nb2,x,1,q,p\n", "2: base goes in a circle: p > q > p"),
        ("b1,x,1,p,p\n", "2: base goes in a circle: p > p"),
    ],
)
def test_a_base_is_a_condition_that_does_not_perturb_itself(tmp_path: Path, rows: str, said: str) -> None:
    assert refused(tmp_path, "block,arm,success,condition,base\n" + rows).startswith(said)


def test_rows_from_a_program_are_checked_alike() -> None:
    with pytest.raises(TableError, match="mine:2: score is '-1'"):
        table_from_rows(
            [{"block": "b", "arm": "x", "score": 1}, {"block": "c", "arm": "x", "score": -1}],
            source="mine",
        )


def test_a_table_with_semicolons_is_refused_with_what_reads_it(tmp_path: Path) -> None:
    said = refused(tmp_path, "block;arm;score\nb;x;0,5\n")
    assert "save the file with commas, and decimal points, or read it with pandas for labctl.api.from_frame" in said
