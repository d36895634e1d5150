"""A filter as a function of DuckDB, which passes whole columns as Arrow arrays."""

import duckdb
import koel
import pyarrow as pa
from duckdb.func import PythonUDFType

blocked = koel.CuckooFilter(1000)
blocked.update(["mailinator.com", "example.net"])


def is_blocked(domains: pa.ChunkedArray) -> pa.ChunkedArray:
    answers: pa.ChunkedArray = blocked.contains_many(domains)
    return answers


connection = duckdb.connect()
connection.create_function(
    "is_blocked", is_blocked, ["VARCHAR"], "BOOLEAN", type=PythonUDFType.ARROW
)
connection.execute("CREATE TABLE mails (address VARCHAR)")
connection.execute(
    "INSERT INTO mails VALUES ('a@mailinator.com'), ('b@example.org'), ('c@example.net')"
)
query = "SELECT address FROM mails WHERE is_blocked(split_part(address, '@', 2)) ORDER BY 1"
rows = [address for (address,) in connection.execute(query).fetchall()]
assert rows == ["a@mailinator.com", "c@example.net"]
print("blocked:", *rows)
