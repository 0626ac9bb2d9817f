/** Unix accounts and homes on a host: creates, changes and locks ours, and finds existing accounts that are not ours. */
export const accounts = String.raw`
# The account files of a host (passwd, group, shadow, gshadow, subuid, subgid), edited for any number of people in one go.
# useradd and usermod flush the disk about twenty times for one person, so that two hundred people took minutes.

# The locks of useradd and passwd: a file with our number in it. One whose holder is dead counts for nothing.
lock_account_files() {
  local file tries=0 holder mine=/etc/passwd.$$
  printf '%s' $$ > $mine || return 1
  for file in passwd group gshadow subuid subgid shadow; do
    [ -e "/etc/$file" ] || continue
    until ln $mine "/etc/$file.lock" 2> /dev/null; do
      holder=$(tr -d '\0' < "/etc/$file.lock" 2> /dev/null)
      tries=$((tries + 1))
      if [ $tries -gt 60 ]; then
        rm -f $mine
        echo "/etc/$file is locked by the process $holder" >&2
        return 1
      fi
      if [ -n "$holder" ] && ! kill -0 "$holder" 2> /dev/null; then rm -f "/etc/$file.lock"; else sleep 0.5; fi
    done
  done
  rm -f $mine
}
unlock_account_files() {
  local file
  for file in passwd group gshadow subuid subgid shadow; do
    [ ! -e "/etc/$file.lock" ] || [ "$(tr -d '\0' < "/etc/$file.lock")" != $$ ] || rm -f "/etc/$file.lock"
  done 2> /dev/null
}

# Makes the files by $T/edits: lines of new|mend|open|lock|drop, name, uid, shell, gid. passwd is last: who is there is whole.
edit_account_files() {
  local file status=0
  [ -s "$T/edits" ] || return 0
  ! is_copy || { say_old_copy; return 0; }
  lock_account_files || { unlock_account_files; return 1; }
  for file in group gshadow subuid subgid shadow passwd; do
    [ ! -e "/etc/$file" ] || { edited "$file" > "$T/$file" && put_account_file "$file"; } || { status=1; break; }
  done
  unlock_account_files
  flush_lookups
  return $status
}
put_account_file() {
  local old=/etc/$1
  ! cmp -s "$T/$1" "$old" || return 0
  case $1 in passwd | shadow | group) grep -q '^root:' "$T/$1" || { echo "the new $old is not whole" >&2; return 1; } ;; esac
  cp --preserve=all "$old" "$old-" && cp --preserve=all "$old" "$old+" && cat "$T/$1" > "$old+" && sync "$old+" && mv -f "$old+" "$old" ||
    { rm -f "$old+"; return 1; }
}
flush_lookups() {
  nscd -i passwd; nscd -i group; sss_cache -UG
} > /dev/null 2>&1 9>&-

# A file of /etc with the edits in it. Lines of NIS (+, -) stay the last ones.
edited() { # passwd|group|shadow|gshadow|subuid|subgid
  local defs=/etc/login.defs
  [ -f $defs ] || defs=/dev/null
  awk -v file="$1" -v comment="$comment" -v today="$today" '
    function fresh(name) {
      if (file == "passwd") return name ":x:" uid[name] ":" gid[name] ":" comment ":/home/" name ":" shell[name]
      if (file == "shadow") return name ":*:" today ":::::" (what[name] == "lock" ? 1 : "") ":"
      # A group of several people is not ours to make.
      if (file ~ /^g/ && gid[name] != uid[name]) return ""
      if (file == "group") return name ":x:" uid[name] ":"
      if (file == "gshadow") return name ":!::"
      return fresh_range(name)
    }
    # Subordinate numbers that nobody had, as useradd gives them; none where there are none left.
    function fresh_range(name,  kind, from, count) {
      kind = file == "subuid" ? "SUB_UID_" : "SUB_GID_"
      count = (kind "COUNT") in defs ? defs[kind "COUNT"] : 65536
      from = (kind "MIN") in defs ? defs[kind "MIN"] : 100000
      if (from < range) from = range
      range = from + count
      return count > 0 && range - 1 <= ((kind "MAX") in defs ? defs[kind "MAX"] : 600100000) ? name ":" from ":" count : ""
    }
    function is_missing(name) {
      return !(name in seen) && (what[name] ~ /^(new|mend)$/ || (file == "shadow" && (what[name] == "lock" || what[name] == "open" && !(name in kept))))
    }
    function add_missing(  i, line) {
      for (i = 1; i <= size; i++) if (is_missing(order[i])) { line = fresh(order[i]); if (line != "") print line }
      size = 0
    }
    # Whom we make, or remove, is in no group that somebody put another of that name into.
    function without(list,  names, i, kept) {
      split(list, names, ","); kept = ""
      for (i = 1; i in names; i++)
        if (!(names[i] in what) || what[names[i]] !~ /^(new|drop)$/) kept = kept (kept == "" ? "" : ",") names[i]
      return kept
    }
    s == "defs" { gsub(/"/, "", $2); defs[$1] = $2 + 0; next }
    s == "kept" { kept[$1] = 1; expiry[$1] = $5; next }
    s == "edits" { what[$2] = $1; uid[$2] = $3; shell[$2] = $4; gid[$2] = $5; order[++size] = $2; next }
    s == "passwd" { person[$1] = $3; next }
    s == "group" { group[$1] = $3; next }
    s == "ranges" { if (file ~ /^sub/ && $2 + $3 > range) range = $2 + $3; next }
    # Lines of NIS stay the last ones.
    /^[+-]/ { add_missing(); print; next }
    file == "group" && NF >= 4 { $4 = without($4) }
    file == "gshadow" && NF >= 4 { $3 = without($3); $4 = without($4) }
    !($1 in what) { print; next }
    what[$1] == "drop" {
      # What is of another with that name stays.
      if (file ~ /^g/ ? gid[$1] != uid[$1] || $1 in group && group[$1] != uid[$1] : $1 in person && person[$1] != uid[$1]) print
      next
    }
    # What is left of another who had the name is not taken over.
    (what[$1] == "new" && file ~ /^sub/) || (what[$1] ~ /^(new|mend)$/ && file ~ /shadow/) { next }
    { seen[$1] = 1 }
    file == "passwd" && what[$1] ~ /^(open|mend)$/ {
      if (!($1 in kept)) { $5 = comment; $6 = "/home/" $1 }
      if (shell[$1] != "") $7 = shell[$1] == "-" ? "" : shell[$1]
    }
    file == "shadow" && what[$1] == "lock" { $8 = 1 }
    file == "shadow" && what[$1] == "open" && $1 in kept {
      # A line that the lock added goes, unless somebody has given it a password.
      if ($8 == "1" && expiry[$1] == "none" && $2 == "*") next
      if ($8 == "1") $8 = expiry[$1] == "none" ? "" : expiry[$1]
      print; next
    }
    file == "shadow" && what[$1] == "open" {
      if ($2 !~ /^\*/) $2 = "*"
      if ($3 == "0" || ($5 != "" && $3 + $5 < today)) { $3 = today; $5 = ""; $7 = "" }
      $8 = ""
    }
    { print }
    END { add_missing() }' s=defs $defs FS='\t' s=kept "$T/kept" s=edits "$T/edits" FS=: OFS=: s=passwd /etc/passwd s=group /etc/group \
    s=ranges "/etc/$1" s= "/etc/$1"
}

# Those that are ours, in $T/ours: by our notes; where those are lost, by the accounts' comment fields; and those of $T/due,
# adopted once and gone by now, of which this host may know nothing.
recall_accounts() {
  set -- /dev/null
  : > "$T/noted"
  if [ -f "$S/kept" ]; then cat "$S/kept"; fi > "$T/kept"
  find_former
  for file in /var/lib/andromeda-slurm/*/accounts /var/lib/andromeda-slurm/*/directory; do [ ! -f "$file" ] || set -- "$@" "$file"; done
  awk -v id="$id" -v taken="$T/taken" '
    s == "former" { former[$1] = $2 ":" $3; next }
    s == "noted" { noted[$1] = 1; print > all; if (FILENAME == own) print; next }
    s == "shadow" { expires[$1] = $8; next }
    $1 in noted || $3 == "0" { next }
    { split($5, comment, ","); is_ours = comment[1] == "Andromeda" && comment[5] == id && $6 == "/home/" $1 }
    !is_ours && former[$1] == $3 ":" $4 { print $1 > taken; is_ours = 1 }
    is_ours { print $1, $3, expires[$1] == "1" ? "locked" : "ready", "-", $7, $4 }' OFS='\t' FS='\t' own="$people" all="$T/noted" \
    s=former "$T/due" s=noted "$@" FS=: s=shadow /etc/shadow s=passwd /etc/passwd > "$T/ours"
}

# What is to be done, in $T/todo, from what is ours ($T/ours), what is there, and what is wanted ($T/wanted).
#   new, mend    is not there          change  can log in, but is not as it should be
#   alter        cannot log in         same    is as it should be
#   conflict     another is in the way barred  is there, but another is in the way
#   adopt        is there as wanted, and not ours yet
# Behind it: name, uid, user ID, wanted shell (conflict, barred: the message), shell to set, mark, why, gid.
plan_accounts() {
  awk '{ shell = s == "wanted" ? $4 : $7 } !seen[shell]++ { print shell }' FS='\t' s=wanted "$T/wanted" FS=: s=passwd /etc/passwd | while read -r shell; do
    use=$shell
    [ -f "$use" ] && [ -x "$use" ] || use=/bin/bash
    [ -x "$use" ] || use=/bin/sh
    emit "$shell" "$use"
  done > "$T/shells"
  awk -v comment="$comment" -v today="$today" -v copy="$(is_copy && echo 1)" '
    function conflict(message) { print "conflict", $1, $2, $3, message, $4, $6, "", gid }
    function shell_to_set() { return copy || $4 == asked[$1] ? "" : use[$4] }
    # What keeps a person of the site out, or lets everyone in: the site has to change it.
    function obstacle() {
      if ($1 in hollow) return "the account " $1 " has an empty password (passwd -l " $1 ")"
      # PAM then takes nothing from /etc/shadow, where a lock is written.
      if ($1 in unshadowed) return "the account " $1 " has its password in /etc/passwd (pwconv)"
      return login_shell[$1] ~ /\/(nologin|false)$/ && $4 !~ /\/nologin$/ ? "the account " $1 " has the shell " login_shell[$1] : ""
    }
    function barred(message) { print "barred", $1, $2, $3, message, $4, $6, "", gid }
    s == "ours" { uid[$1] = $2; who[$1] = $4; shell[$1] = $5; number[$1] = $6; next }
    s == "kept" { kept[$1] = 1; before[$1] = $5; asked[$1] = $6; next }
    s == "passwd" {
      if ($2 == "") hollow[$1] = 1
      else if ($2 !~ /^(x$|[*!])/) unshadowed[$1] = 1
      there[$1] = $3; group[$1] = $4; gecos[$1] = $5; home[$1] = $6; login_shell[$1] = $7
      if ($3 in owner) twin[$3] = owner[$3]
      owner[$3] = $1; next
    }
    s == "shadow" {
      expires[$1] = $8
      if ($2 == "") hollow[$1] = 1
      secret[$1] = $2 !~ /^[*!]/
      current[$1] = $3 != "0" && ($5 == "" || $3 + $5 >= today)
      open[$1] = $8 == "" && $2 !~ /^!/ && current[$1]
      # With a password that is only locked (usermod -L), or with a day to come on which it expires.
      usable[$1] = current[$1] && $2 !~ /^!+[^!*]/ && ($8 == "" || $8 > today)
      next
    }
    s == "shells" { use[$1] = $2; next }
    { wanted[$1] = 1; gid = $5; why = "" }
    $1 in uid && uid[$1] != $2 { conflict("the account " $1 " was made here with the uid " uid[$1] " before"); next }
    $1 in there && !($1 in uid) && $6 != "" && there[$1] == $2 && group[$1] == gid {
      if ($2 in twin) why = "the uid " $2 " of " $1 " is also that of " (owner[$2] == $1 ? twin[$2] : owner[$2])
      else if (!usable[$1]) why = "the account " $1 " is locked here, or has expired (chage -l " $1 ")"
      else why = obstacle()
      print "adopt", $1, $2, $3, $4, home[$1], $6, why, gid; next
    }
    $1 in there && (!($1 in uid) || there[$1] != $2 || group[$1] != gid) {
      if ($6 == "") conflict("the account " $1 " (uid " there[$1] ") is there already and is not ours")
      else conflict("the account " $1 " has the uid " there[$1] " and the gid " group[$1] " here, and not " $2 " and " gid)
      next
    }
    !($1 in there) && $2 in owner { conflict("the uid " $2 " of " $1 " belongs to the account " owner[$2] ", which is not ours"); next }
    !($1 in there) { what = $1 in uid ? "mend" : "new" }
    $1 in there && ($1 in kept || copy) {
      if (expires[$1] == "1" ? $1 in kept && before[$1] ~ /^(1|none)$/ : !usable[$1]) { barred("the account " $1 " is locked here, or has expired (chage -l " $1 ")"); next }
      if (obstacle() != "") { barred(obstacle()); next }
      set = shell_to_set()
      if (set != "" && set != login_shell[$1]) why = "has another shell"
      what = expires[$1] == "1" ? "alter" : why != "" ? "change" : "same"
      print what, $1, $2, $3, $4, set, "", why, gid; next
    }
    {
      why = !($1 in there) ? "" : secret[$1] ? "has a password" : home[$1] != "/home/" $1 ? "has another home" : login_shell[$1] != use[$4] ? "has another shell" : ""
    }
    $1 in there { what = !open[$1] || use[login_shell[$1]] != login_shell[$1] ? "alter" : why != "" ? "change" : "same" }
    { print what, $1, $2, $3, $4, use[$4], !($1 in there) ? $6 : gecos[$1] != comment ? "unmarked" : "", why, gid }
    END {
      for (name in uid) if (!(name in wanted)) {
        is = name in there && there[name] == uid[name]
        print is && expires[name] != "1" ? "lock" : is ? "locked" : "gone", name, uid[name], who[name], shell[name], "", "", "", number[name]
      }
    }' OFS='\t' FS='\t' s=ours "$T/ours" s=kept "$T/kept" FS=: s=passwd /etc/passwd s=shadow /etc/shadow \
    FS='\t' s=shells "$T/shells" s=wanted "$T/wanted" > "$T/plan"
  check_adoptions
  find_foreign
}

# Names and numbers that a directory service, a group or a home has already. A directory service is asked about
# those that are there only where nsswitch.conf names it first. Homes that others can write to are in $T/writable.
find_foreign() {
  local source asked='^new$' at=/home/
  [ -z "$homes" ] || at=$homes/
  source=$(sed -n "s/^[ $tab]*passwd:[ $tab]*\([^ $tab]*\).*/\1/p" /etc/nsswitch.conf 2> /dev/null)
  case $source in '' | files | compat) ;; *) asked='^(new|alter|change|same|adopt)$' ;; esac
  for file in new lookups people groups writable; do : > "$T/$file"; done
  awk '
    $1 == "new" { if ($3 == $9) print $2 > (prefix "new"); print $9 > (prefix "new"); print $3 > (prefix "lookups") }
    $1 ~ asked { print $2 > (prefix "lookups") }
    $1 ~ /^(new|mend|alter|change|same|adopt)$/ { print at $2 }' FS='\t' prefix="$T/" asked="$asked" at="$at" "$T/plan" |
    xargs -r stat -L -c '%n:%u:%a' 2> /dev/null > "$T/homes"
  [ ! -s "$T/lookups" ] || xargs getent passwd < "$T/lookups" | cut -d : -f 1,3 > "$T/people"
  [ ! -s "$T/new" ] || xargs getent group < "$T/new" | cut -d : -f 1,3 > "$T/groups"
  awk -v writable="$T/writable" -v at="$at" '
    function conflict(message,  is) {
      is = $1 ~ /^(new|mend|adopt)$/ ? "conflict" : "barred"
      print is, $2, $3, $4, message, $5, is == "conflict" ? $7 : "", "", $9
    }
    s == "kept" { kept[$1] = 1; next }
    s == "people" { person[$1] = $2; number[$2] = $1; next }
    s == "groups" { group[$1] = 1; gid[$2] = $1; next }
    s == "homes" { home[$1] = $2; open[$1] = $3 ~ /[2367]$/; next }
    $1 !~ /^(new|mend|alter|change|same|adopt)$/ { print; next }
    (at $2) in home && home[at $2] != $3 {
      conflict(at $2 " belongs to the uid " home[at $2] " and not to " $3); next
    }
    open[at $2] && !($2 in kept) && $1 != "adopt" { print at $2 > writable }
    $2 in person && ($1 == "new" || person[$2] != $3) { conflict("a directory service has an account " $2 " that is not ours"); next }
    $1 != "new" { print; next }
    $3 in number { conflict("a directory service has the uid " $3 " of " $2 " for " number[$3] ", which is not ours"); next }
    $3 != $9 && !($9 in gid) { conflict("the group with the gid " $9 " of " $2 " is not there (groupadd -g " $9 ")"); next }
    $3 != $9 { print; next }
    $2 in group { conflict("the group " $2 " is there already and is not ours"); next }
    $3 in gid { conflict("the gid " $3 " of " $2 " belongs to the group " gid[$3] ", which is not ours"); next }
    { print }' OFS='\t' FS=: s=people "$T/people" s=groups "$T/groups" s=homes "$T/homes" FS='\t' s=kept "$T/kept" s=todo "$T/plan" \
    > "$T/todo"
  makes_homes || : > "$T/writable"
}

apply_accounts() {
  if from_directory; then apply_directory; return 0; fi
  rows account > "$T/wanted" || abort 'no temporary file can be written'
  [ ! -s "$S/conflicts" ] || flush_lookups
  recall_accounts
  plan_accounts
  # Who is missing in it, as the temporary directory is full, would lose their processes.
  awk -F '\t' 's == "todo" { planned[$2] = 1; next } !($1 in planned) { exit 1 }' s=todo "$T/todo" s= "$T/wanted" "$T/ours" ||
    abort 'the plan of the accounts is not whole'
  ! grep -q '^new' "$T/todo" || owe_all made
  awk -F '\t' '$1 ~ /^(conflict|barred)$/ { print $4, $2, $3, $5, $9, $7 }' OFS='\t' "$T/todo" | keep "$S/conflicts"
  keep_fields
  note_former
  # Ours from here on, before any of it is made: what is cut off half-way is finished next time.
  awk -F '\t' '
    s == "shells" { shell[$1] = $4; next }
    $1 ~ /^(new|mend|alter|change|same|barred|adopt)$/ { print $2, $3, "ready", $4, shell[$2], $9 }
    $1 ~ /^(lock|locked|gone)$/ { print $2, $3, "locked", $4, $5, $9 }' OFS='\t' s=shells "$T/wanted" s=todo "$T/todo" |
    sort > "$T/accounts"
  # One that is ours and in conflict now stays ours; processes and jobs of a person who did not leave go on.
  awk -F '\t' 's == "wanted" { uid[$1] = $2; next } s == "known" { known[$1] = 1; next }
    !($1 in known) { $3 = uid[$1] == $2 ? "held" : "locked"; print }' OFS='\t' \
    s=wanted "$T/wanted" s=known "$T/accounts" s= "$T/ours" | sort - "$T/accounts" | keep "$S/accounts"
  awk -F '\t' '
    $1 ~ /^(new|mend|lock)$/ { print $1, $2, $3, $6, $9 }
    $1 ~ /^(alter|change)$/ || ($1 == "same" && $7 == "unmarked") { print "open", $2, $3, $6, $9 }' OFS='\t' "$T/todo" > "$T/edits"
  edit_account_files 2> "$T/out" || problem account "the accounts cannot be written: $(first_output)"
  end_processes
  make_homes
  # What else they allow is up to the person.
  while read -r home; do chmod 700 "$home" > "$T/out" 2>&1 || problem mode "others can write to $home: $(first_output)"; done < "$T/writable"
}

# Those who are locked have no processes here; whoever else has their number by now keeps theirs.
locked_uids() {
  awk 's == "ours" { if ($3 == "locked") name[$2] = $1; next } $3 in name && $1 != name[$3] { delete name[$3] }
    END { for (uid in name) printf "%s%s", (n++ ? "," : ""), uid }' FS='\t' s=ours "$1" FS=: s=passwd /etc/passwd
}
# A process that has ended and whose parent has not asked how is none; Zl: its other threads run.
has_processes() { ps -U "$1" -u "$1" -o stat= 2> /dev/null | grep -q '^[^Z]\|l'; } # UIDS
end_processes() {
  local uids tries
  uids=$(locked_uids "$people")
  [ -n "$uids" ] || return 0
  for tries in 1 2 3 4 5 6 7 8 9 10; do
    # Killed before it is asked, so that nothing depends on the answer.
    pkill -KILL -U "$uids"; pkill -KILL -u "$uids"
    has_processes "$uids" || return 0
    sleep 0.2
  done
  problem process 'a process of someone who left does not end'
}

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
