"""The SQL of the store. Each statement costs the same with a thousand rows and with a million.

The table Cache is diskcache's. Ours are the rows with raw = 1 and a key that is text, in mode 1 (the
body is in the value) or 2 (the body is the file that is named). access_time holds no time but the
number of a use (uses.py). Counters are kept by diskcache's triggers.
"""

IN_ROW, IN_FILE = 1, 2  # diskcache's MODE_RAW and MODE_BINARY; its 4 is a pickle

FIND = "SELECT rowid, mode, filename, value FROM Cache WHERE key = ? AND raw = 1"

# A number that is absurdly high would make the next one equal to it; a foreign row may have one, or a text.
LAST_USE = "SELECT access_time FROM Cache WHERE access_time < 9e15 ORDER BY access_time DESC LIMIT 1"

TOUCH = "UPDATE Cache SET access_time = ? WHERE rowid = ?"

FIND_ROW = "SELECT rowid, filename FROM Cache WHERE key = ? AND raw = 1"

INSERT = "INSERT INTO Cache (access_time, size, mode, filename, value, key, raw) VALUES (?, ?, ?, ?, ?, ?, 1)"

REPLACE = "UPDATE Cache SET access_time = ?, size = ?, mode = ?, filename = ?, value = ? WHERE rowid = ?"

# To put a new record in the row of one that is evicted changes 6 pages; to delete that and insert this, 10.
RECYCLE = (
    "UPDATE Cache SET access_time = ?, size = ?, mode = ?, filename = ?, value = ?, key = ?, raw = 1,"
    " store_time = NULL, expire_time = NULL, tag = NULL WHERE rowid = ?"
)

REWRITE = "UPDATE Cache SET access_time = ?, size = ?, value = ? WHERE rowid = ?"

DELETE = "DELETE FROM Cache WHERE rowid = ?"

COUNT = "SELECT CAST(value AS INTEGER) FROM Settings WHERE key = 'count'"

VOLUME = "SELECT CAST(value AS INTEGER) FROM Settings WHERE key = 'size'"

OLDEST = (
    "SELECT rowid, CAST(coalesce(access_time, 0) AS REAL), key, filename, CAST(coalesce(size, 0) AS INTEGER)"
    " FROM Cache ORDER BY access_time LIMIT 1"
)

# Goes through all rows, and is used where there are next to none.
RECOUNT = (
    "UPDATE Settings SET value = CASE key"
    " WHEN 'count' THEN (SELECT count(*) FROM Cache) ELSE (SELECT coalesce(sum(size), 0) FROM Cache) END"
    " WHERE key IN ('count', 'size')"
)

HAS_FILE = "SELECT 1 FROM Cache WHERE filename = ?"

# Text is compared byte by byte, so all that begins with a text lies between it and itself with the last character.
MOST_UNDER = 500
UNDER = f"SELECT rowid, key, filename FROM Cache WHERE key >= ? AND key < ? AND raw = 1 LIMIT {MOST_UNDER}"

# What goes through all rows: this by the index alone, which is small; the others in pieces.
USES = "SELECT rowid, access_time FROM Cache WHERE access_time < 9e15 ORDER BY access_time"

KEY = "SELECT key FROM Cache WHERE rowid = ? AND raw = 1"

LAST_ROW = "SELECT max(rowid) FROM Cache"

SOME = "SELECT rowid, filename FROM Cache WHERE rowid <= ? ORDER BY rowid LIMIT 1000"
