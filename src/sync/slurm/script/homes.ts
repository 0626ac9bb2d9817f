/** People's homes: made here, by a command of the site, or by another host, such as the server of an export with root_squash. */
export const homes = String.raw`
# The directory in which this host makes homes, in $homes; empty where another host does.
find_homes() {
  homes=/home
  if has_rows homes; then row homes; homes=$line; fi
  [ "$homes" != - ] || homes=''
}
makes_homes() { [ -n "$homes" ] && ! has_rows make-home; }

make_homes() {
  rm -f "$S/homeless"
  if makes_homes; then copy_homes; elif has_rows make-home; then command_homes; fi
}

# Whole or not at all, and by whichever host is first where homes are shared. Two processes a home: there may be hundreds.
copy_homes() {
  local new="$homes/.andromeda-$$-$host"
  # Of scripts that were killed here: one runs at a time on a host.
  for name in "$homes"/.andromeda-*-"$host"; do [ ! -d "$name" ] || rm -rf "$name"; done
  while IFS="$tab" read -r name uid state _ _ gid; do
    [ "$state" = ready ] && [ ! -e "$homes/$name" ] || continue
    [ -d "$new" ] || mkdir "$new" > "$T/out" 2>&1 || { home_problem "$new"; return 0; }
    { if [ -d /etc/skel ]; then cp -R /etc/skel "$new/$name"; else mkdir "$new/$name"; fi && chown -R "$uid:$gid" "$new/$name"; } > "$T/out" 2>&1 ||
      { home_problem "$homes/$name"; rm -rf "$new/$name"; ! is_squashed || break; }
  done < "$people"
  [ -d "$new" ] || return 0
  # None is left over where every one failed.
  for name in "$new"/*; do [ ! -d "$name" ] || { chmod 700 "$new"/* && mv -n -t "$homes" "$new"/*; break; }; done > "$T/out" 2>&1 ||
    problem home "homes cannot be made: $(first_output)"
  rm -rf "$new"
}
is_squashed() { grep -q 'Permission denied\|Operation not permitted' "$T/out"; }
home_problem() {
  if is_squashed; then problem home "root cannot make homes in $homes here (root_squash?): set homes or commands.makeHome"
  else problem home "$1 cannot be made: $(first_output)"; fi
}

# Once for each person, as this host may not see homes. Where it fails, that person alone waits, and it runs again with each pass.
command_homes() {
  local command status
  row make-home; command=$(printf '%s' "$line" | unpack)
  : >> "$S/homes-made"
  awk 's == "made" { made[$1] = $2; next } $3 == "ready" && made[$1] != $2' FS='\t' s=made "$S/homes-made" s= "$people" > "$T/homes"
  while IFS="$tab" read -r name uid _ who _ gid; do
    [ ! -e "$homes/$name" ] || continue
    status=0
    run_command "$(printf '%s' "$command" | sed "s/{username}/$name/g; s/{uid}/$uid/g; s/{gid}/$gid/g")" || status=$?
    if [ $status -eq 0 ]; then emit "$name" "$uid" >> "$S/homes-made"
    else emit "$who" "$name" "$uid" "the home of $name cannot be made: makeHome ended with $status: $(first_output)" >> "$T/homeless"; fi
  done < "$T/homes"
  [ ! -s "$T/homeless" ] || keep "$S/homeless" < "$T/homeless"
}

observe_homes() {
  if [ -s "$S/homeless" ]; then
    sed "s/^/conflict$tab/" "$S/homeless"
    emit drift 'a home is not made'
  fi
  ! makes_homes || while read -r name; do [ -e "$homes/$name" ] || { emit drift "$homes/$name is gone"; break; }; done < "$T/logins"
}
`;
