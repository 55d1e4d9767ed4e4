"""Files made to cost time or memory: each is refused by its size, or read in work that grows with its length alone."""

import pytest

from wanbench.errors import RawDataError
from wanbench.ingest import iperf3, iperf3_documents

FREE = iperf3_documents.FREE_VALUES


@pytest.mark.parametrize(
    "values", [b"[],", b"{},", b"1,", b'{"a":1},'], ids=["lists", "objects", "numbers", "members"]
)
def test_json_of_more_values_than_its_size_allows_is_refused(values):
    data = b'{"start": [' + values * (FREE + 1) + b"1]}"
    with pytest.raises(RawDataError, match=r"at most [0-9,]+ values in a file of this size"):
        iperf3.read(data)


def test_json_of_many_documents_is_refused_at_the_first_that_is_none_of_iperf3():
    read = iperf3_documents.documents("a", '{"a": "0123456789"}\n' * 10 + '{"b": ')
    assert next(read) == (1, {"a": "0123456789"})
    with pytest.raises(RawDataError) as error:
        iperf3.read(b'{"a": "0123456789"}\n' * 10 + b'{"b": ')
    assert error.value.line_number == 1


@pytest.mark.parametrize("text", ['{"start": "' + "x" * 1000, '{"start": "' + '\\"' * 1000, '{"a": "nan'])
def test_a_string_without_its_end_is_passed_once(text, monkeypatch):
    passes = []
    decode = iperf3_documents._decode
    monkeypatch.setattr(iperf3_documents, "_decode", lambda *given: passes.append(0) or decode(*given))
    monkeypatch.setattr(iperf3_documents, "_UP_TO_NOT_A_NUMBER", None)
    with pytest.raises(RawDataError, match="a whole JSON document"):
        iperf3.read(text.encode())
    assert len(passes) == 1


@pytest.mark.parametrize("text", ["x" * 50, '\\"' * 50, "-nan, " * 50, '", nan, "' * 20, '"' + '\\"' * 50])
def test_what_is_no_number_is_sought_in_one_pass(text):
    pattern = iperf3_documents._UP_TO_NOT_A_NUMBER
    ends = [match.end() for match in pattern.finditer(text)]
    starts = [match.start() for match in pattern.finditer(text)]
    assert starts == [0, *ends[:-1]] and ends[-1] == len(text), "no place is looked at twice"
