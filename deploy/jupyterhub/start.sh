#!/bin/sh
# Users from /srv/students.txt, the class cache, then the hub.
set -eu
umask 022
groupadd -f students
groupadd -f teachers
while IFS=: read -r name password role || [ -n "$name" ]; do
  [ -n "$name" ] || continue
  id "$name" >/dev/null 2>&1 || useradd --create-home --shell /bin/bash "$name"
  usermod -aG "$([ "$role" = teacher ] && echo teachers || echo students)" "$name"
  echo "$name:$password" | chpasswd
done < /srv/students.txt
export INDUCTOR_LAB_SHARED_CACHE=/srv/class
OMP_NUM_THREADS="${CLASS_THREADS:-1}" inductor-lab warm /etc/skel/course/tutorials --into /srv/class
cd /srv
exec jupyterhub -f /srv/inductor_lab/deploy/jupyterhub/jupyterhub_config.py
