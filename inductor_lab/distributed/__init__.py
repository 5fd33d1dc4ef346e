"""Several ranks: their communication, the work that overlaps it, and their differences.

```
c = lab.inspect(step, x)                     # on each rank, under torchrun
lab.distributed.timeline(c, ranks=8)         # work and communication, hidden and exposed time
c.save(f"rank{dist.get_rank()}.lab.json")
lab.join(["rank0.lab.json", "rank1.lab.json"])   # side by side, on any machine
```
"""

from inductor_lab.compiler.ir.collective import Rates
from inductor_lab.distributed.join import Ranks, join
from inductor_lab.distributed.timeline import INFINIBAND, NVLINK, Timeline, timeline

__all__ = ["INFINIBAND", "NVLINK", "Ranks", "Rates", "Timeline", "join", "timeline"]
