"""Every defect still fits the code and names tests that exist: cheap, so that `make sabotage` never surprises."""

import pytest

from tests.sabotage.defect import ROOT, Defect, GoneStale
from tests.sabotage.defects import DEFECTS


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda d: d.name)
def test_defect_still_fits_the_code(defect: Defect) -> None:
    changed = defect.applied((ROOT / defect.file).read_text())
    compile(changed, defect.file, "exec") if defect.file.endswith(".py") else None
    assert defect.new in changed
    assert defect.why


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda d: d.name)
def test_tests_of_a_defect_exist(defect: Defect) -> None:
    for test in defect.tests:
        path, _, function = test.partition("::")
        assert (ROOT / path).exists()
        assert not function or f"def {function.partition('[')[0]}" in (ROOT / path).read_text()


def test_there_are_at_least_ten_defects_with_names_of_their_own() -> None:
    names = {defect.name for defect in DEFECTS}
    assert len(names) == len(DEFECTS) >= 10


def test_defect_is_stale_when_its_text_is_gone_or_twice() -> None:
    defect = Defect("d", "w", "f", "old", "new", ("t",))
    for source in ("nothing", "old and old"):
        with pytest.raises(GoneStale):
            defect.applied(source)
