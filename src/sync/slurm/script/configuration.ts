/**
 * Slurm configuration on a host: rendered over the site's own files, tried out in a copy, and replaced whole. The former
 * files are kept until Slurm has shown that it runs with the new ones (restart.ts). Also the scripts that Slurm or a start of
 * the host runs.
 */
export const configuration = String.raw`
# Our part of a Slurm configuration file: a block at its end between two marks. A line of the site's that sets the same
# thing is kept, behind a mark that makes it a comment, so that taking our part away gives the site's file again.
# render FILE BLOCK whole|keys: FILE with BLOCK in place of what was ours; an empty BLOCK gives the site's own file.
# whole: the block replaces all of the file. keys: it replaces the settings that it names.
render() {
  [ -f "$1" ] || { [ ! -s "$2" ] || block_marks "$2"; return 0; }
  if [ ! -s "$2" ]; then site_part "$1"; return; fi
  site_part "$1" | hide "$(if [ "$3" = whole ]; then echo .; else keys_in "$2"; fi)"
  block_marks "$2"
}
# hide PATTERN: the lines of a Slurm file, as comments where the key matches; a line that goes on is one with the next.
hide() {
  awk -v pattern="$1" "$slurm_lines"'
    function print_lines(  i, mark) {
      mark = key_of(line) ~ pattern ? "#andromeda: " : ""
      for (i = 1; i <= size; i++) print mark kept[i]
      line = ""; size = 0
    }
    { kept[++size] = $0; line = line read_line($0); if (!joins) print_lines() }
    END { print_lines() }'
}
# The keys that a block sets, as a pattern; those that a file may have several of are not among them.
keys_in() {
  awk "$slurm_lines"'
    function add_key(  key) { key = key_of(line); line = ""; if (key !~ /^(|[?]|nodename|nodeset|downnodes|frontendname|slurmctldhost|include)$/) keys = keys "|" key }
    { line = line read_line($0) }
    !joins { add_key() }
    END { add_key(); print "^(-" keys ")$" }' "$1"
}
block_marks() {
  printf '%s\n' '# BEGIN andromeda: written by the access service, what is changed between these lines is lost'
  # A block without a last newline must not swallow the mark.
  awk 1 "$1"
  printf '%s\n' '# END andromeda'
}

# has_part FILE BLOCK: whether there is anything of ours in it, or is to be.
has_part() { [ -s "$2" ] || grep -q '^# BEGIN andromeda\|^#andromeda: ' "$1"; }

# site_part FILE: what the site wrote. A block whose end is missing is not taken for one.
site_part() {
  awk '
    /^# BEGIN andromeda/ && !inside { inside = 1; held = $0; next }
    inside && /^# END andromeda/ { inside = 0; next }
    inside { held = held "\n" $0; next }
    { sub(/^#andromeda: /, ""); print }
    END { if (inside) print held }' "$1"
}

# The site's own prolog or epilog, which slurm.conf can have only one of, from the site's part in $T/site.
site_script() { (conf=$T/site; conf_value "$1"); } # Prolog|Epilog

# The files that we have a part in; slurm.conf goes by the name that the lab file gives it.
parts='slurm.conf cgroup.conf gres.conf'
live() { if [ "$1" = slurm.conf ]; then echo "$conf"; else echo "$etc/$1"; fi; }
mode_of() { if [ "$1" = gres.conf ]; then echo whole; else echo keys; fi; }

# Everything as it is to be, in $T/next; the names of what differs in $T/changed.
stage() {
  mkdir -p "$T/next" "$T/blocks" && : > "$T/changed"
  for part in $parts; do
    sed -n "s/^$part$tab//p" "$T/row.block" | unpack > "$T/blocks/$part"
    if [ -f "$(live $part)" ] && ! has_part "$(live $part)" "$T/blocks/$part"; then cat "$(live $part)" > "$T/next/$part"; continue; fi
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
  find "$trial" -name '*.conf' -type f > "$T/trials"
  while read -r file; do
    hide '^(accountingstorage.*|jobcomp.*|prioritytype|slurmctld(logfile|pidfile|syslogdebug|primaryonprog|primaryoffprog)|statesavelocation|(suspend|resume|resumefail|reboot|health.*)program|(prolog|epilog)slurmctld|mailprog|suspendtime|federationparameters)$' \
      < "$file" > "$T/hidden" && cat "$T/hidden" > "$file"
  done < "$T/trials"
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
  # One that still ran when timeout ended it (124, 137) got so far; on a busy machine that takes longer than the tries.
  case $status in 0 | 124 | 137) ! grep -q 'fatal:' "$T/out" ;; *) return 1 ;; esac
}
user_of() { if [ -n "$1" ]; then echo "$1"; else echo root; fi; }
# slurmd reads gres.conf; it waits for device files that the controller may not have, which is no fault of the file.
check_gres() { # FILE
  local node
  node=$(conf=$1 etc=$(dirname "$1"); conf_value NodeName all | grep -v '^DEFAULT$' | head -n 1)
  node=$(timeout 5 scontrol show hostnames "$node" 2> /dev/null | head -n 1)
  [ -z "$node" ] || reads_gres "$node" "$1" 'fatal:|parsing error|unrecognized key'
}
reads_gres() { # NODE FILE FAULTS
  command -v slurmd > /dev/null || return 0
  timeout 5 slurmd -G -N "$1" -f "$2" < /dev/null > "$T/out" 2>&1 9>&-
  ! grep -Eiq "$3" "$T/out"
}
check_error() {
  { grep -E 'fatal|Parsing error|unrecognized key|error:' "$T/out" || cat "$T/out"; } | grep -vEi 'pmix|MPI|High latency|MailProg|specified more than once|state file|state save' |
    sed "s#$T/trial/#$etc/#g; s/^[a-z]*: //" | head -n 3 | one_line
}

# How many configurations were found good here: a host that keeps a last good one knows by it which that was.
confirmed() { first "$S/confirmed"; [ -n "$line" ] || line=0; echo "$line"; }
kept_after() { first "$S/trial/.after"; echo "$line"; }
is_on_trial() { has_row role controller && [ -f "$S/trial/.after" ] && [ "$(kept_after)" = "$(confirmed)" ]; }

# Puts what is staged in place.
install_staged() {
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
# What our notes say of the configuration, apart from the files themselves.
notes='files files.sums blocks fields start-login start-compute'
# keep_last_good CONFIRMED: what is there, until what replaces it has been found good on all hosts. A file that another host
# replaced, where they share it, is that host's to put back.
keep_last_good() {
  local path new=$S/trial.new
  if [ "$(kept_after)" != "$1" ]; then
    rm -rf "$S/trial" "$new" && mkdir -p "$new/files" "$new/notes" && : > "$new/.absent" && printf '%s\n' "$1" > "$new/.after" || abort "$new cannot be made"
    for name in $notes; do [ ! -e "$S/$name" ] || cp -Rp "$S/$name" "$new/notes/" || abort "$new cannot be written"; done
    rm -rf "$S/was"
    ! has_row role controller || node_states > "$new/.nodes"
    mv "$new" "$S/trial" || abort "$S/trial cannot be made"
  fi
  while read -r name; do
    case $name in etc/* | gone/*) path=$etc/$(basename "$name") ;; *) path=$(live "$name") ;; esac
    if [ -e "$S/trial/files/$(basename "$path")" ] || grep -qxF "$path" "$S/trial/.absent"; then continue; fi
    if [ -e "$path" ]; then cp -p "$path" "$S/trial/files/.new" && mv "$S/trial/files/.new" "$S/trial/files/$(basename "$path")"
    else echo "$path" >> "$S/trial/.absent"; fi || abort "$S/trial cannot be written"
  done < "$T/changed"
}
restore_last_good() {
  local path part last kept
  # What the site wrote since stays: there only our part goes back.
  for part in $parts; do
    path=$(live $part) last=$S/trial/notes/blocks/$part
    kept=$S/trial/files/$(basename "$path")
    if [ ! -f "$kept" ] || [ ! -f "$path" ] || [ "$(site_part "$path")" = "$(site_part "$kept")" ]; then continue; fi
    [ -f "$last" ] || last=/dev/null
    render "$path" "$last" "$(mode_of $part)" | keep "$kept"
  done
  for path in "$S/trial/files/"*; do [ ! -f "$path" ] || replace "$path" "$etc/$(basename "$path")"; done
  while read -r path; do rm -f "$path"; done < "$S/trial/.absent"
  for name in $notes; do
    rm -rf "$S/$name"
    [ ! -e "$S/trial/notes/$name" ] || cp -Rp "$S/trial/notes/$name" "$S/$name" || abort "$S/$name cannot be written"
  done
  touch "$S/files"
  [ ! -s "$S/blocks/slurm.conf" ] || claim
}
# replace NEW FILE: whole, with the rights of the one that was there.
replace() {
  local new
  new=$(beside "$2")
  cat "$1" > "$new" && if [ -e "$2" ]; then chown --reference="$2" "$new" && chmod --reference="$2" "$new"
  else chmod 644 "$new"; fi &&
    mv -f "$new" "$2" || { rm -f "$new"; abort "$2 cannot be written"; }
}

# Several clusters may have people on a host, of other organizations or installations; one has the configuration of its Slurm,
# with all that is in $ours: the first that has any, until it has none.
is_others() {
  [ -f "$ours/owner" ] || return 1
  first "$ours/owner"
  case $line in *"$id"*) return 1 ;; esac
}
has_configuration() { has_rows file || { has_rows block && grep -q "$tab." "$T/row.block"; }; }
claim() {
  [ ! -f "$ours/owner" ] || return 0
  emit "$id" "$(rows organization)" > "$T/owner"
  mkdir -p -m 755 "$ours" && replace "$T/owner" "$ours/owner" || abort "$ours/owner cannot be written"
}
# That of another stays as it is. Were it ours before there was an owner, nothing of ours is in force now.
leave_to_owner() {
  has_configuration || return 0
  digest=owner
  refuse "another cluster of Andromeda has the configuration of this Slurm; $ours/owner names it. It must be cleared there first. Where that cluster is no more, remove this file on every host"
  rm -rf "$S/blocks"
  keep "$S/fields" < /dev/null
}

apply_configuration() {
  : > "$T/changed"
  has_row configuration apply || return 0
  if is_others; then leave_to_owner; return 0; fi
  ! was_others || rm -f "$S/refused"
  if [ ! -f "$conf" ]; then
    if has_row role controller; then digest=none; refuse "there is no $conf"; fi
    return 0
  fi
  ! has_configuration || claim
  stage
  mkdir -p "$T/next.etc"
  if has_row role controller; then
    stage_etc
    digest=$(cat "$T/next/"* "$T/blocks/"* "$T/etc" | sha256sum | cut -d ' ' -f 1)
    if [ ! -s "$T/changed" ] && [ ! -f "$T/foreign" ]; then rm -f "$S/refused"; return 0; fi
    if was_refused && ! is_due; then refuse_again; return 0; fi
    if [ -f "$T/foreign" ]; then reason=$(one_line < "$T/foreign"); else reason=$(dry_run); fi
    if [ -n "$reason" ]; then refuse "$reason"; return 0; fi
    keep_last_good "$(confirmed)"
    if was_refused; then tries=$(cut -f 5 "$S/refused"); else tries=0; fi
    emit "$digest" "$tries" | keep "$S/trying"
    rm -f "$S/refused"
    owe reload
  fi
  ! has_rows trial || keep_last_good "$(rows trial)"
  [ ! -s "$T/changed" ] || install_staged
  has_row role controller || has_rows trial || [ ! -d "$S/trial" ] || rm -rf "$S/trial"
}
was_others() { first "$S/refused"; case $line in owner"$tab"*) ;; *) return 1 ;; esac; }

# refuse REASON [retry]: not tried again unless it is put again; with retry, later.
refuse() {
  local tries='' until=''
  refused=yes
  if [ "$2" = retry ]; then
    tries=$(($(cut -f 2 "$S/trying") + 1))
    until=$(($(date +%s) + 60 * (1 << (tries < 7 ? tries - 1 : 6))))
  fi
  emit "$digest" "$(rows version | cut -f 3)" "$1" "$(rows put)" "$tries" "$until" | keep "$S/refused"
}
refuse_again() {
  refused=yes
  awk -F '\t' -v version="$(rows version | cut -f 3)" '{ $2 = version; print }' OFS='\t' "$S/refused" > "$T/refused" && keep "$S/refused" < "$T/refused"
}
was_refused() { [ "$(cut -f 1 "$S/refused" 2> /dev/null)" = "$digest" ] && [ "$(cut -f 4 "$S/refused")" = "$(rows put)" ]; }
is_due() { [ -n "$(cut -f 6 "$S/refused")" ] && [ "$(date +%s)" -ge "$(cut -f 6 "$S/refused")" ]; }

# Scripts that Slurm or a start of the host runs: prolog and epilog, and what login and compute nodes start with.
# A directory whose glob always finds something: Slurm drains a node whose prolog is missing.
apply_scripts() {
  local kind
  mkdir -p "$ours/prolog.d" "$ours/epilog.d" && chmod 755 "$ours" "$ours/prolog.d" "$ours/epilog.d" || abort "$ours cannot be made"
  for kind in prolog epilog; do
    printf '#!/bin/sh\nexit 0\n' > "$T/script"; keep_script "$ours/$kind.d/00-andromeda"
    ! is_others || { rm -f "$S/scripts.sums"; continue; }
    # Scripts may come before the controller has taken the configuration; the host is ours with it.
    ! has_row configuration apply || ! has_configuration || claim
    site=$(! has_rows site || sed -n "s/^$kind$tab//p" "$T/row.site")
    if [ -n "$site" ]; then
      { printf '#!/bin/sh\n# The %s that slurm.conf named before.\n' $kind
        printf 'for one in %s; do "$one" "$@" || exit; done\n' "$site"; } > "$T/script"; keep_script "$ours/$kind.d/01-site"
    else rm -f "$ours/$kind.d/01-site"; fi
    { ! has_rows file || sed -n "s/^$kind$tab//p" "$T/row.file"; } > "$T/scripts"
    while IFS="$tab" read -r name text; do
      printf '%s' "$text" | unpack > "$T/script"; keep_script "$ours/$kind.d/50-$name"
    done < "$T/scripts"
    for path in "$ours/$kind.d"/50-*; do
      [ ! -e "$path" ] || cut -f 1 "$T/scripts" | grep -qxF "$(basename "$path" | cut -c 4-)" || rm -f "$path"
    done
  done
  is_others || scripts_sums | keep "$S/scripts.sums"
}
# What a change by hand of ours would change, to compare it with.
scripts_sums() {
  set --
  for path in "$ours/"*log.d/00-andromeda "$ours/"*log.d/01-site "$ours/"*log.d/50-*; do [ ! -e "$path" ] || set -- "$@" "$path"; done
  { stat -c '%a %u %n' "$ours/"*log.d "$@"; sha256sum "$@"; } 2> /dev/null | sort
}
files_sums() { [ ! -s "$S/files" ] || tr '\n' '\0' < "$S/files" | xargs -0 -r sha256sum 2> /dev/null | sort; }

# keep_script FILE: what is in $T/script.
keep_script() {
  local new
  if cmp -s "$T/script" "$1" && [ -O "$1" ] && [ "$(stat -c %a "$1")" = 755 ]; then return 0; fi
  new=$(beside "$1")
  chmod 755 "$T/script" && cp -p "$T/script" "$new" && mv -f "$new" "$1" || { rm -f "$new"; abort "$1 cannot be written"; }
}

apply_starts() {
  for role in login compute; do
    if has_row role $role && has_rows file && rows file | awk -F '\t' -v name=$role '$1 == "start" && $2 == name { print $3 }' > "$T/start" && [ -s "$T/start" ]; then
      unpack < "$T/start" | keep "$S/start-$role" && chmod 700 "$S/start-$role"
    elif [ -f "$S/start-$role" ]; then rm -f "$S/start-$role" "$S/started-$role"; fi
  done
}
start_mark() { printf '%s ' "$(boot_id)"; sha256sum < "$S/start-$1"; }
is_started() { [ ! -f "$S/start-$1" ] || [ "$(cat "$S/started-$1" 2> /dev/null)" = "$(start_mark "$1")" ]; }
run_start() { # ROLE
  [ -f "$S/start-$1" ] || return 0
  local run="exec sh $S/start-$1"
  [ "$(head -c 2 "$S/start-$1")" != '#!' ] || run="exec $S/start-$1"
  run_command "$run" || { problem start "the start script of $1 nodes ended with $?: $(first_output)"; return 1; }
  start_mark "$1" | keep "$S/started-$1"
}
# After a boot, or where nothing restarts: what has not run since is run.
catch_up_starts() {
  for role in login compute; do
    ! has_row role $role || is_started $role || grep -q "^$role" "$S/owed" 2> /dev/null || run_start $role
  done
}
`;
