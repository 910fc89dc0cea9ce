"""Work as one of several server processes: claim and finish jobs until none is left; print what was done."""

import json
import sys
from pathlib import Path

from app.catalog.database import Database
from app.catalog.jobs import Jobs
from app.catalog.process_owner import ProcessOwner

folder = Path(sys.argv[1])
database = Database(folder / "catalog.db")
database.migrate()
jobs = Jobs(database, max_queued=10_000, lease_seconds=60)
owner = ProcessOwner(folder / "workers")
done: list[str] = []
sys.stdout.write("ready\n")
sys.stdout.flush()
sys.stdin.readline()
while any(jobs.list(None, state=state, limit=1)[0] for state in ("queued", "running")):
    while (job := jobs.claim(owner.id)) is not None:
        assert len([other for other in jobs.unfinished(job.collection_id, job.document_id) if other.owner]) == 1
        assert jobs.progress(job.id, owner.id, stage="embed", done=1, total=2, unit="chunks")
        assert jobs.heartbeat(owner.id) == set()
        assert jobs.finish(job.id, owner.id, "succeeded", result={"by": owner.id})
        done.append(job.id)
owner.close()
database.close()
sys.stdout.write(json.dumps(done))
