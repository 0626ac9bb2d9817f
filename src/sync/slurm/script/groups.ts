/** Groups with fixed numbers: made, or adopted where name and number are the same. Other members of an adopted one stay. */
export const groups = String.raw`
# What is to be done, in $T/group-plan, from what is wanted ($T/group-rows: name, gid, members), what is there, and our notes
# ($S/groups: name, gid, made or adopted, and for an adopted one the members before).
#   set   as wanted               drop  made, and not wanted any more
#   fault another is in the way   back  adopted, and not wanted any more
plan_groups() {
  if from_directory; then resolve_groups; return; fi
  find_other_groups
  awk '
    function fault(message) { print "fault", $1, $2, message }
    s == "notes" { gid[$1] = $2; kind[$1] = $3; before[$1] = $4; next }
    s == "group" { there[$1] = $3; list[$1] = $4; holder[$3] = $1; next }
    s == "passwd" { has_primary[$4] = 1; next }
    s == "others" { other[$1] = $3; other_holder[$3] = $1; next }
    s == "sudo" { rule[$1] = 1; next }
    { wanted[$1] = 1 }
    $1 in gid && gid[$1] != $2 { fault("the group " $1 " had the gid " gid[$1] " here before, and not " $2); next }
    $1 in there && there[$1] != $2 { fault("the group " $1 " (gid " there[$1] ") is there already and does not have the gid " $2); next }
    ("%" $1) in rule && !($1 in kind) || ("%#" $2) in rule && !($1 in kind) { fault("the group " $1 " is not " ($1 in there ? "taken" : "made") ", as sudoers names it"); next }
    $1 in there { print "set", $1, $2, $3, $1 in kind ? kind[$1] : "adopted", $1 in kind ? before[$1] : list[$1]; next }
    $2 in holder { fault("the gid " $2 " of the group " $1 " belongs to the group " holder[$2]); next }
    $1 in other { fault("a directory service has the group " $1 " (gid " other[$1] ")"); next }
    $2 in other_holder { fault("a directory service has the gid " $2 " of the group " $1 " for " other_holder[$2]); next }
    { print "set", $1, $2, $3, "made", "" }
    END {
      for (name in gid) if (!(name in wanted)) {
        # One that is the first group of an account stays, as groupdel has it.
        is_kept = kind[name] == "adopted" || there[name] != gid[name] || gid[name] in has_primary
        print is_kept ? "back" : "drop", name, gid[name], before[name]
      }
    }' OFS='\t' FS='\t' s=notes "$T/group-notes" FS=: s=group /etc/group s=passwd /etc/passwd s=others "$T/other-groups" \
    FS='\t' s=sudo "$T/sudoers" s=rows "$T/group-rows" > "$T/group-plan"
}

# In a directory groups are the site's: looked up and not made. One that is not found may also mean that it does not answer.
resolve_groups() {
  cut -f 1,2 "$T/group-rows" | timeout 4 xargs -r getent group > "$T/other-groups" 2> /dev/null
  awk '
    s == "notes" { print $3 == "adopted" ? "back" : "drop", $1, $2, $4; next }
    s == "others" { gid[$1] = $3; name[$3] = $1; next }
    $1 in gid && gid[$1] != $2 { print "fault", $1, $2, "the directory has the gid " gid[$1] " for the group " $1 ", and not " $2; next }
    $2 in name && name[$2] != $1 { print "fault", $1, $2, "the directory has the gid " $2 " of the group " $1 " for " name[$2]; next }
    !($1 in gid) { print "notice", $1, $2, "the group " $1 " (gid " $2 ") is not in the directory, or that does not answer" }' \
    OFS='\t' FS='\t' s=notes "$T/group-notes" FS=: s=others "$T/other-groups" FS='\t' s=rows "$T/group-rows" > "$T/group-plan"
}

# Of groups that /etc/group does not have those of a directory service with their name or number; and what sudoers names.
find_other_groups() {
  : > "$T/other-groups"; : > "$T/sudoers"
  awk -F '\t' 's == "notes" { known[$1] = 1; next } !($1 in known) { is_new = 1 } END { exit !is_new }' s=notes "$T/group-notes" s= "$T/group-rows" && read_sudoers
  awk 's == "group" { gid[$1] = $3; next } !($1 in gid) { print $1; print $2 }' FS=: s=group /etc/group FS='\t' s= "$T/group-rows" > "$T/lookups"
  [ -s "$T/lookups" ] || return 0
  xargs getent group < "$T/lookups" | awk -F : 's == "group" { gid[$1] = $3; next } gid[$1] != $3' s=group /etc/group s= - > "$T/other-groups"
}

# The file with that done to it. Lines of NIS (+, -) stay the last ones.
with_groups() { # group|gshadow
  awk -v file="$1" '
    # Our people are in it as wanted; others stay.
    function members(list, wanted,  names, i, kept, want) {
      split(wanted, names, ","); for (i = 1; i in names; i++) want[names[i]] = 1
      split(list, names, ","); kept = ""
      for (i = 1; i in names; i++) if (!(names[i] in ours) || names[i] in want) { kept = kept "," names[i]; delete want[names[i]] }
      split(wanted, names, ",")
      for (i = 1; i in names; i++) if (names[i] in want && names[i] in ours) { kept = kept "," names[i]; delete want[names[i]] }
      return substr(kept, 2)
    }
    function add_missing(  i, name) {
      for (i = 1; i <= size; i++) {
        name = order[i]
        if (!(name in seen)) print file == "group" ? name ":x:" gid[name] ":" members("", wanted[name]) : name ":!::" members("", wanted[name])
      }
      size = 0
    }
    s == "ours" { ours[$1] = 1; next }
    s == "plan" {
      if ($1 ~ /^(fault|notice)$/) next
      what[$2] = $1; gid[$2] = $3; wanted[$2] = $4
      if ($1 == "set" && $5 == "made") order[++size] = $2
      next
    }
    s == "group" { there[$1] = $3; next }
    /^[+-]/ { add_missing(); print; next }
    !($1 in what) || ($1 in there && there[$1] != gid[$1]) { print; next }
    what[$1] == "drop" { next }
    # What is left of another that had the name is not taken over.
    !($1 in there) { next }
    { seen[$1] = 1; $4 = members($4, wanted[$1]); print }
    END { add_missing() }' OFS=: FS='\t' s=ours "$S/accounts" s=plan "$T/group-plan" FS=: s=group /etc/group s= "/etc/$1"
}
changes_groups() {
  local file
  for file in group gshadow; do
    [ ! -e "/etc/$file" ] || { with_groups "$file" > "$T/$file" && cmp -s "$T/$file" "/etc/$file"; } || return 0
  done
  return 1
}
edit_group_files() {
  local file status=0
  lock_account_files || { unlock_account_files; return 1; }
  # group is last: a group that is there is whole.
  for file in gshadow group; do
    [ ! -e "/etc/$file" ] || { with_groups "$file" > "$T/$file" && put_account_file "$file"; } || { status=1; break; }
  done
  unlock_account_files
  flush_lookups
  return $status
}

note_groups() { awk -F '\t' '$1 == "set" { print $2, $3, $5, $6 }' OFS='\t' "$T/group-plan"; }
recall_groups() { if [ -f "$S/groups" ]; then cat "$S/groups"; fi > "$T/group-notes"; }

apply_groups() {
  rows group > "$T/group-rows"
  [ -s "$T/group-rows" ] || [ -s "$S/groups" ] || [ -s "$S/group-rows" ] || return 0
  keep "$S/group-rows" < "$T/group-rows"
  ! is_copy || return 0
  recall_groups
  plan_groups
  # Ours from here on, before any of it is made; those that go are ours until they are gone.
  note_groups | cat - "$T/group-notes" | awk -F '\t' '!seen[$1]++' | keep "$S/groups"
  if changes_groups; then
    # Jobs have it after GroupUpdateTime: slurmctld keeps what it looked up, through a reconfigure too.
    edit_group_files 2> "$T/out" || { problem group "the groups cannot be written: $(first_output)"; return 0; }
  fi
  awk -F '\t' 's == "plan" { if ($1 ~ /^(drop|back)$/) gone[$2] = 1; next } !($1 in gone)' s=plan "$T/group-plan" s= "$S/groups" > "$T/group-notes"
  keep "$S/groups" < "$T/group-notes"
}

observe_groups() {
  [ -s "$S/group-rows" ] || [ -s "$S/groups" ] || return 0
  if [ -f "$S/group-rows" ]; then cat "$S/group-rows"; fi > "$T/group-rows"
  recall_groups
  plan_groups
  awk -F '\t' '$1 == "fault" { print "fault\t" $4 } $1 == "notice" { print "notice\t" $4 }' "$T/group-plan"
  if is_copy; then
    ! changes_groups || emit notice 'the groups are copied here, and are not current'
    return 0
  fi
  note_groups > "$T/out"
  if changes_groups || ! awk -F '\t' 's == "notes" { noted[$1] = 1; next } !($1 in noted) { exit 1 }' s=notes "$T/group-notes" s= "$T/out"; then
    emit drift 'groups are not as they should be'
  fi
}
`;
