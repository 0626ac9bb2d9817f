/** Scripts that Slurm or a start of the host runs: prolog and epilog, and what login and compute nodes start with. */
export const scripts = String.raw`
# A directory whose glob always finds something: Slurm drains a node whose prolog is missing.
apply_scripts() {
  local kind
  for kind in prolog epilog; do
    mkdir -p -m 755 "$ours" && chmod 755 "$ours" && mkdir -p -m 755 "$ours/$kind.d" && chmod 755 "$ours/$kind.d" ||
      abort "$ours/$kind.d cannot be made"
    printf '#!/bin/sh\nexit 0\n' | keep_script "$ours/$kind.d/00-andromeda"
    site=$(rows site | awk -F '\t' -v kind=$kind '$1 == kind { print $2 }')
    if [ -n "$site" ]; then
      { printf '#!/bin/sh\n# The %s that slurm.conf named before.\n' $kind
        printf 'for one in %s; do "$one" "$@" || exit; done\n' "$site"; } | keep_script "$ours/$kind.d/01-site"
    else rm -f "$ours/$kind.d/01-site"; fi
    rows file | awk -F '\t' -v kind=$kind '$1 == kind { print $2, $3 }' OFS='\t' > "$T/scripts"
    while IFS="$tab" read -r name text; do
      printf '%s' "$text" | unpack | keep_script "$ours/$kind.d/50-$name"
    done < "$T/scripts"
    for path in "$ours/$kind.d"/50-*; do
      [ ! -e "$path" ] || cut -f 1 "$T/scripts" | grep -qxF "$(basename "$path" | cut -c 4-)" || rm -f "$path"
    done
  done
}
keep_script() {
  local new
  cat > "$S/script.new" || abort "$S/script.new cannot be written"
  if cmp -s "$S/script.new" "$1"; then rm "$S/script.new"; return 0; fi
  new=$(beside "$1")
  chmod 755 "$S/script.new" && cp -p "$S/script.new" "$new" && mv -f "$new" "$1" || { rm -f "$new"; abort "$1 cannot be written"; }
  rm -f "$S/script.new"
}

apply_starts() {
  for role in login compute; do
    if has_row role $role && rows file | awk -F '\t' -v name=$role '$1 == "start" && $2 == name { print $3 }' > "$T/start" && [ -s "$T/start" ]; then
      unpack < "$T/start" | keep "$S/start-$role" && chmod 700 "$S/start-$role"
    else rm -f "$S/start-$role" "$S/started-$role"; fi
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
