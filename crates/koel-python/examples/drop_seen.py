"""Drops rows that were seen before, from a stream of Parquet and CSV files.

The files are read one after the other. A filter of 15 kB remembers the URLs of all of them.
"""

import tempfile
from pathlib import Path

import koel
import polars as pl

folder = Path(tempfile.mkdtemp())
for day in range(4):
    # Half of the URLs of a day were there on the day before, and each comes twice.
    urls = [f"https://example.org/{i}" for i in range(1000 * day, 1000 * day + 2000)]
    frame = pl.DataFrame({"url": urls * 2})
    if day % 2:
        frame.write_csv(folder / f"{day}.csv")
    else:
        frame.write_parquet(folder / f"{day}.parquet")

seen = koel.CuckooFilter(10_000, error_rate=0.001)
kept = []
for file in sorted(folder.iterdir()):
    frame = pl.read_csv(file) if file.suffix == ".csv" else pl.read_parquet(file)
    new = frame.filter(seen.add_many(frame["url"]))
    print(f"{file.name}: {len(new)} of {len(frame)} rows are new")
    kept.append(new)

rows = pl.concat(kept)
assert rows["url"].is_unique().all()
# Of 5000 URLs, about one in a thousand is dropped by mistake.
assert 4950 <= len(rows) <= 5000
print(f"kept {len(rows)} rows, with a filter of {seen.nbytes} bytes")
