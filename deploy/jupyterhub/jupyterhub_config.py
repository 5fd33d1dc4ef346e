"""JupyterHub for a class on one machine: `jupyterhub -f deploy/jupyterhub/jupyterhub_config.py`.

Students are users of the machine, in the group `students`; teachers in `teachers`.  Each works as
that user, so nobody reads or changes another one's files.

CLASS_THREADS              of each kernel (1)
CLASS_IDLE_MINUTES         after which a notebook that does nothing is closed (30)
INDUCTOR_LAB_SHARED_CACHE  what `inductor-lab warm --into` has made (/srv/class)

docs/classroom.md has figures for thirty students.
"""

import os

c = get_config()  # noqa: F821

idle = 60 * float(os.environ.get("CLASS_IDLE_MINUTES", "30"))
threads = os.environ.get("CLASS_THREADS", "1")

# Who may come in.
c.JupyterHub.authenticator_class = "pam"
c.PAMAuthenticator.allowed_groups = {"students", "teachers"}
c.PAMAuthenticator.admin_groups = {"teachers"}

# What a student gets: few threads, few heaps, and what the teacher's kernels have compiled.
c.JupyterHub.spawner_class = "localprocess"
c.Spawner.default_url = "/lab/tree/course"
c.Spawner.environment = {
    "OMP_NUM_THREADS": threads,
    "MKL_NUM_THREADS": threads,
    "MALLOC_ARENA_MAX": "2",
    "INDUCTOR_LAB_SHARED_CACHE": os.environ.get("INDUCTOR_LAB_SHARED_CACHE", "/srv/class"),
}

# What is idle goes: first the kernel, which has the memory, then the server around it.
c.Spawner.args = [
    f"--MappingKernelManager.cull_idle_timeout={idle:.0f}",
    f"--MappingKernelManager.cull_interval={max(idle / 10, 1):.0f}",
    "--MappingKernelManager.cull_connected=True",
    f"--ServerApp.shutdown_no_activity_timeout={idle:.0f}",
]

# A class comes in at once.  Beyond a limit the hub turns students away (status 429) and does not
# queue them, so there is none, and time for all servers to start side by side.
c.JupyterHub.concurrent_spawn_limit = 0
c.Spawner.start_timeout = 300
c.Spawner.http_timeout = 120
