#!/bin/sh
# Users from /srv/students.txt, the class cache, then the hub.
set -eu
umask 022
groupadd -rf students
groupadd -rf teachers

each() {
  tr -d '\r' < /srv/students.txt | while IFS=: read -r name password role || [ -n "$name" ]; do
    [ -z "$name" ] || "$1"
  done
}

# A home that is there keeps its owner, whoever was added to the file above the name: these come first.
returns() {
  if [ -d "/home/$name" ] && ! id "$name" >/dev/null 2>&1; then
    useradd --uid "$(stat -c %u "/home/$name")" --shell /bin/bash "$name"
  fi
}

comes() {
  id "$name" >/dev/null 2>&1 || useradd --create-home --shell /bin/bash "$name"
  chmod 700 "/home/$name" # useradd leaves it open to all where login.defs has no HOME_MODE
  usermod -aG "$([ "$role" = teacher ] && echo teachers || echo students)" "$name"
  printf '%s:%s\n' "$name" "$password" | chpasswd
}

each returns
each comes
export INDUCTOR_LAB_SHARED_CACHE=/srv/class
OMP_NUM_THREADS="${CLASS_THREADS:-1}" inductor-lab warm /etc/skel/course/tutorials --into /srv/class
cd /srv
exec jupyterhub -f /srv/inductor_lab/deploy/jupyterhub/jupyterhub_config.py
