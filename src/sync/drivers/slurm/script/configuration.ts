/**
 * Slurm configuration on a host: rendered over the site's own files, tried out in a copy, and put in place whole. What was
 * there before is kept until Slurm has shown that it runs with the new one (restart.ts).
 */
export const configuration = String.raw`
# The files that we have a part in; slurm.conf goes by the name that the lab file gives it.
parts='slurm.conf cgroup.conf gres.conf'
live() { if [ "$1" = slurm.conf ]; then echo "$conf"; else echo "$etc/$1"; fi; }
mode_of() { if [ "$1" = gres.conf ]; then echo whole; else echo keys; fi; }

# Everything as it is to be, in $T/next; the names of what differs in $T/changed.
stage() {
  mkdir -p "$T/next" "$T/blocks" && : > "$T/changed"
  for part in $parts; do
    rows block | awk -F '\t' -v part="$part" '$1 == part { print $2 }' | unpack > "$T/blocks/$part"
    render "$(live $part)" "$T/blocks/$part" "$(mode_of $part)" > "$T/next/$part"
    if [ -f "$(live $part)" ]; then cmp -s "$(live $part)" "$T/next/$part" || echo $part >> "$T/changed"
    elif [ -s "$T/next/$part" ]; then echo $part >> "$T/changed"; fi
  done
}
# Files of the controller's own directory, each ours or not there at all.
stage_etc() {
  rows file | awk -F '\t' '$1 == "etc" { print $2, $3 }' OFS='\t' > "$T/etc"
  mkdir -p "$T/next.etc"
  while IFS="$tab" read -r name text; do
    printf '%s' "$text" | unpack > "$T/next.etc/$name"
    if [ ! -f "$S/fields" ] && cmp -s "$etc/$name" "$T/next.etc/$name"; then echo "$etc/$name" >> "$S/files"; fi
    if [ -e "$etc/$name" ] && ! grep -qxF "$etc/$name" "$S/files"; then
      echo "$etc/$name is there already and is not ours." >> "$T/foreign"
    elif ! cmp -s "$etc/$name" "$T/next.etc/$name"; then echo "etc/$name" >> "$T/changed"; fi
  done < "$T/etc"
  while read -r path; do
    case $path in "$etc"/*/*) continue ;; "$etc"/*) ;; *) continue ;; esac
    [ -e "$T/next.etc/$(basename "$path")" ] || [ ! -e "$path" ] || echo "gone/$(basename "$path")" >> "$T/changed"
  done < "$S/files"
}

# Tries out what is staged, on a copy, without a network. Prints what is wrong; nothing where nothing is.
dry_run() {
  local trial=$T/trial user
  mkdir "$trial" && cp -R "$etc/." "$trial/" 2> /dev/null
  rm -rf "$trial/andromeda"
  for part in $parts; do [ ! -s "$T/next/$part" ] || cp "$T/next/$part" "$trial/$part"; done
  [ "$(basename "$conf")" = slurm.conf ] || rm -f "$trial/$(basename "$conf")"
  cp -R "$T/next.etc/." "$trial/"
  SLURM_CONF="$trial/slurm.conf" timeout 10 scontrol show hostnames x > "$T/out" 2>&1 9>&- || { check_error; return; }
  grep -i 'unrecognized key' "$T/out" > /dev/null && { check_error; return; }
  check_gres "$trial/slurm.conf" || { check_error; return; }
  user=$(conf_value SlurmUser)
  # Nothing of what a controller does to the world: no programs, no accounting, no state of the real one's.
  find "$trial" -name '*.conf' -type f -exec sed -i -E 's/^[ \t]*(AccountingStorage[A-Za-z]*|JobComp[A-Za-z]*|PriorityType|Slurmctld(LogFile|PidFile|SyslogDebug|PrimaryOnProg|PrimaryOffProg)|StateSaveLocation|(Suspend|Resume|ResumeFail|Reboot|Health[A-Za-z]*)Program|(Prolog|Epilog)Slurmctld|MailProg|SuspendTime|FederationParameters)[ \t]*=/#&/I' {} +
  mkdir "$trial/state"
  printf '%s\n' "StateSaveLocation=$trial/state" "SlurmctldPidFile=$trial/pid" "SlurmctldLogFile=$trial/log" >> "$trial/slurm.conf"
  chmod 711 "$T"
  chown -R "$(user_of "$user")" "$trial"
  unshare -n true 2> /dev/null || return 0
  unshare -n sh -c 'ip link set lo up; ip addr add 192.0.2.1/32 dev lo
    exec timeout -k 1 4 slurmctld -D -c -f "$1"' check "$trial/slurm.conf" < /dev/null > "$T/out" 2>&1 9>&- &
  survives $! || check_error
  chmod 700 "$T"
}
# Whether a controller on trial gets to where it serves, and stays there.
survives() { # PID
  local tries status
  for tries in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do
    kill -0 "$1" 2> /dev/null || break
    grep -q 'Running as primary' "$T/out" && { sleep 0.4; break; }
    sleep 0.1
  done
  if kill -TERM "$1" 2> /dev/null; then wait "$1"; status=0; else wait "$1"; status=$?; fi
  [ "$status" -eq 0 ] && ! grep -q 'fatal:' "$T/out"
}
user_of() { if [ -n "$1" ]; then echo "$1"; else echo root; fi; }
# slurmd reads gres.conf; it waits for device files that this host may not have, which is no fault of the file.
check_gres() {
  local node
  command -v slurmd > /dev/null || return 0
  node=$(sed -n 's/^[ \t]*NodeName=\([^ \t]*\).*/\1/Ip' "$1" | grep -v '^DEFAULT$' | head -n 1)
  node=$(timeout 5 scontrol show hostnames "$node" 2> /dev/null | head -n 1)
  [ -n "$node" ] || return 0
  timeout 5 slurmd -G -N "$node" -f "$1" < /dev/null > "$T/out" 2>&1 9>&-
  ! grep -Eiq 'fatal:|parsing error|unrecognized key' "$T/out"
}
check_error() {
  { grep -E 'fatal|Parsing error|unrecognized key|error:' "$T/out" || cat "$T/out"; } | grep -vEi 'pmix|MPI|MailProg|specified more than once|state file|state save' |
    sed "s#$T/trial/#$etc/#g; s/^[a-z]*: //" | head -n 3 | one_line
}

# Puts what is staged in place; what was there stays in $S/trial until it is confirmed.
install_staged() {
  [ -d "$S/trial" ] || { rm -rf "$S/trial.new" && mkdir "$S/trial.new" && keep_current && mv "$S/trial.new" "$S/trial"; } || abort "$S/trial cannot be made"
  while read -r name; do
    case $name in
      etc/*) grep -qxF "$etc/$(basename "$name")" "$S/files" || echo "$etc/$(basename "$name")" >> "$S/files"
        replace "$T/next.etc/$(basename "$name")" "$etc/$(basename "$name")" ;;
      gone/*) rm -f "$etc/$(basename "$name")"; grep -vxF "$etc/$(basename "$name")" "$S/files" | keep "$S/files" ;;
      *) if [ -s "$T/next/$name" ]; then replace "$T/next/$name" "$(live "$name")"; else rm -f "$(live "$name")"; fi ;;
    esac
  done < "$T/changed"
  mkdir -p "$S/blocks" && cp "$T/blocks/"* "$S/blocks/" || abort "$S/blocks cannot be written"
}
keep_current() {
  local path
  cp "$S/files" "$S/trial.new/.files" || return 1
  [ ! -d "$S/blocks" ] || cp -R "$S/blocks" "$S/trial.new/.blocks" || return 1
  while read -r name; do
    case $name in etc/* | gone/*) path=$etc/$(basename "$name") ;; *) path=$(live "$name") ;; esac
    if [ -e "$path" ]; then cp -p "$path" "$S/trial.new/$(basename "$path")" || return 1; else echo "$path" >> "$S/trial.new/.absent" || return 1; fi
  done < "$T/changed"
}
# replace NEW FILE: whole, with the rights of the one that was there.
replace() {
  local new
  new=$(beside "$2")
  if [ -e "$2" ]; then cp -p "$2" "$new" && cat "$1" > "$new"
  else cp "$1" "$new" && chmod 644 "$new"; fi &&
    mv -f "$new" "$2" || { rm -f "$new"; abort "$2 cannot be written"; }
}

apply_configuration() {
  : > "$T/changed"
  has_row configuration apply || return 0
  if [ ! -f "$conf" ]; then
    if has_row role controller; then digest=none; refuse "there is no $conf"; fi
    return 0
  fi
  stage
  mkdir -p "$T/next.etc"
  if has_row role controller; then
    stage_etc
    digest=$(cat "$T/next/"* "$T/blocks/"* "$T/etc" | sha256sum | cut -d ' ' -f 1)
    if [ ! -s "$T/changed" ]; then rm -f "$S/refused"; return 0; fi
    if [ -f "$S/refused" ] && [ "$(cut -f 1 "$S/refused")" = "$digest" ]; then refuse "$(cut -f 3- "$S/refused")"; return 0; fi
    if [ -f "$T/foreign" ]; then reason=$(one_line < "$T/foreign"); else reason=$(dry_run); fi
    if [ -n "$reason" ]; then refuse "$reason"; return 0; fi
    rm -f "$S/refused"
    printf '%s' "$digest" > "$S/trying" || abort "$S/trying cannot be written"
  fi
  [ -s "$T/changed" ] || return 0
  has_row role controller || { rm -rf "$S/trial"; emit changed configuration; }
  ! has_row role controller || owe reload
  install_staged
  has_row role controller || rm -rf "$S/trial"
}
refuse() { # REASON
  refused=yes
  emit "$digest" "$(rows version | cut -f 3)" "$1" | keep "$S/refused"
}
`;
