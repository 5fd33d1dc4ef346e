"""JupyterHub for a class on one machine: `jupyterhub -f deploy/jupyterhub/jupyterhub_config.py`.

Students are users of the machine in the group `students`, teachers in the group `teachers`.  Each
notebook server runs as its user, so users cannot read or change each other's files.

CLASS_THREADS              threads of each kernel (1)
CLASS_IDLE_MINUTES         minutes after which an idle notebook is closed (30)
INDUCTOR_LAB_SHARED_CACHE  the cache that `inductor-lab warm --into` writes (/srv/class)

docs/classroom.md has figures for thirty students.
"""

import os

c = get_config()  # noqa: F821

idle = 60 * float(os.environ.get("CLASS_IDLE_MINUTES", "30"))
threads = os.environ.get("CLASS_THREADS", "1")

# Authentication.
c.JupyterHub.authenticator_class = "pam"
c.PAMAuthenticator.allowed_groups = {"students", "teachers"}
c.PAMAuthenticator.admin_groups = {"teachers"}

# Settings of a student: few threads, few heaps, and the class cache.
c.JupyterHub.spawner_class = "localprocess"
c.Spawner.default_url = "/lab/tree/course"
c.Spawner.environment = {
    "OMP_NUM_THREADS": threads,
    "MKL_NUM_THREADS": threads,
    "MALLOC_ARENA_MAX": "2",
    "INDUCTOR_LAB_SHARED_CACHE": os.environ.get("INDUCTOR_LAB_SHARED_CACHE", "/srv/class"),
}

# Stop idle processes: first the kernel, which uses the memory, then its server.
c.Spawner.args = [
    f"--MappingKernelManager.cull_idle_timeout={idle:.0f}",
    f"--MappingKernelManager.cull_interval={max(idle / 10, 1):.0f}",
    "--MappingKernelManager.cull_connected=True",
    f"--ServerApp.shutdown_no_activity_timeout={idle:.0f}",
]

# All students connect at once.  Above a limit the hub rejects students (status 429) instead of
# queueing them, so there is no limit, and a long timeout for servers that start concurrently.
c.JupyterHub.concurrent_spawn_limit = 0
c.Spawner.start_timeout = 300
c.Spawner.http_timeout = 120
