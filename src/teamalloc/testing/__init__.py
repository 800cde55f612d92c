"""The contracts of the extension points, as functions anybody can call in a test.

Each takes an implementation and something to try it on, returns nothing when the contract is
kept, and otherwise raises ``ContractBroken`` with what was found. They need no test runner:

    from teamalloc.testing import check_format

    def test_my_reader(tmp_path):
        check_format(MyReader(), [tmp_path / "session.jsonl"])
"""

from teamalloc.testing.contract import ContractBroken
from teamalloc.testing.families import check_family
from teamalloc.testing.formats import check_format, check_sessions
from teamalloc.testing.renderers import check_renderer

__all__ = ["ContractBroken", "check_family", "check_format", "check_renderer", "check_sessions"]
