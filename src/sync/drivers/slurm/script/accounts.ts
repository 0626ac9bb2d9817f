/** Unix accounts on a host: made, changed, locked; and what is there already and is not ours. */
export const accounts = String.raw`
# Those that are ours, in $T/ours: by our notes, and where those are lost, by the accounts' comment fields.
recall_accounts() {
  cat "$S/accounts" > "$T/ours" 2> /dev/null
  cat /dev/null /var/lib/andromeda-slurm/*/accounts > "$T/noted" 2> /dev/null
  # Accounts of earlier versions do not name their cluster: they are ours where no other was ever here.
  only=$(ls -A /var/lib/andromeda-slurm 2> /dev/null | grep -vxc -e lock -e "$(rows id)")
  awk -v id="$(rows id)" -v others="$only" '
    s == "noted" { noted[$1] = 1; next }
    s == "shadow" { expires[$1] = $8; next }
    $1 in noted || $3 < 20000 || $4 != $3 || $6 != "/home/" $1 { next }
    { split($5, comment, ",") }
    comment[1] == "Andromeda" && (comment[5] == id || (comment[5] == "" && others == 0)) {
      print $1, $3, expires[$1] == "1" ? "locked" : "ready", "-", $7
    }' OFS='\t' FS='\t' s=noted "$T/noted" FS=: s=shadow /etc/shadow s=passwd /etc/passwd >> "$T/ours"
}

# What is to be done, in $T/todo, from what is ours ($T/ours), what is there, and what is wanted ($T/wanted).
#   new, mend    is not there          change  can log in, but is not as it should be
#   alter        cannot log in         same    is as it should be
#   conflict     another is in the way barred  is there, but another is in the way
plan_accounts() {
  { cut -f 4 "$T/wanted"; cut -d : -f 7 /etc/passwd; } | sort -u | while read -r shell; do
    use=$shell
    [ -f "$use" ] && [ -x "$use" ] || use=/bin/bash
    [ -x "$use" ] || use=/bin/sh
    emit "$shell" "$use"
  done > "$T/shells"
  awk -v comment="$(comment)" -v today="$(today)" '
    function conflict(message) { print "conflict", $1, $2, $3, message }
    s == "ours" { uid[$1] = $2; who[$1] = $4; shell[$1] = $5; next }
    s == "passwd" { there[$1] = $3; group[$1] = $4; gecos[$1] = $5; login_shell[$1] = $7; owner[$3] = $1; next }
    s == "shadow" {
      expires[$1] = $8
      open[$1] = $8 == "" && $2 !~ /^!/ && $3 != "0" && ($5 == "" || $3 + $5 >= today)
      next
    }
    s == "shells" { use[$1] = $2; next }
    { wanted[$1] = 1 }
    $1 in uid && uid[$1] != $2 { conflict("the account " $1 " was made here with the uid " uid[$1] " before"); next }
    $1 in there && (!($1 in uid) || there[$1] != $2 || group[$1] != $2) {
      conflict("the account " $1 " (uid " there[$1] ") is there already and is not ours"); next
    }
    !($1 in there) && $2 in owner { conflict("the uid " $2 " belongs to the account " owner[$2] ", which is not ours"); next }
    !($1 in there) { what = $1 in uid ? "mend" : "new" }
    $1 in there { what = !open[$1] || use[login_shell[$1]] != login_shell[$1] ? "alter" : login_shell[$1] != use[$4] ? "change" : "same" }
    { print what, $1, $2, $3, $4, use[$4], $1 in there && gecos[$1] != comment ? "unmarked" : "" }
    END {
      for (name in uid) if (!(name in wanted)) {
        is = name in there && there[name] == uid[name]
        print is && expires[name] != "1" ? "lock" : is ? "locked" : "gone", name, uid[name], who[name], shell[name]
      }
    }' OFS='\t' FS='\t' s=ours "$T/ours" FS=: s=passwd /etc/passwd s=shadow /etc/shadow \
    FS='\t' s=shells "$T/shells" s=wanted "$T/wanted" > "$T/todo"
  find_foreign
}

# Names and numbers that a directory service, a group or a home has already. A directory service is asked about
# those that are there only where nsswitch.conf names it first.
find_foreign() {
  awk -F '\t' '$1 == "new" { print $2; print $3 }' "$T/todo" > "$T/new"
  cp "$T/new" "$T/lookups"
  case $(awk '$1 == "passwd:" { print $2 }' /etc/nsswitch.conf 2> /dev/null) in
    '' | files | compat) ;;
    *) awk -F '\t' '$1 ~ /^(alter|change|same)$/ { print $2 }' "$T/todo" >> "$T/lookups" ;;
  esac
  : > "$T/people"; : > "$T/groups"
  [ ! -s "$T/lookups" ] || xargs getent passwd < "$T/lookups" | cut -d : -f 1,3 > "$T/people"
  [ ! -s "$T/new" ] || xargs getent group < "$T/new" | cut -d : -f 1,3 > "$T/groups"
  awk -F '\t' '$1 ~ /^(new|mend|alter|change|same)$/ { print "/home/" $2 }' "$T/todo" | xargs -r stat -L -c '%n:%u' 2> /dev/null > "$T/homes"
  awk '
    function conflict(message) { print $1 ~ /^(new|mend)$/ ? "conflict" : "barred", $2, $3, $4, message }
    s == "people" { person[$1] = $2; number[$2] = $1; next }
    s == "groups" { group[$1] = 1; gid[$2] = $1; next }
    s == "homes" { home[$1] = $2; next }
    $1 !~ /^(new|mend|alter|change|same)$/ { print; next }
    ("/home/" $2) in home && home["/home/" $2] != $3 {
      conflict("/home/" $2 " belongs to the uid " home["/home/" $2] " and not to " $3); next
    }
    $2 in person && ($1 == "new" || person[$2] != $3) { conflict("a directory service has an account " $2 " that is not ours"); next }
    $1 != "new" { print; next }
    $3 in number { conflict("a directory service has the uid " $3 " for " number[$3] ", which is not ours"); next }
    $2 in group { conflict("the group " $2 " is there already and is not ours"); next }
    $3 in gid { conflict("the gid " $3 " belongs to the group " gid[$3] ", which is not ours"); next }
    { print }' OFS='\t' FS=: s=people "$T/people" s=groups "$T/groups" s=homes "$T/homes" FS='\t' s=todo "$T/todo" \
    > "$T/todo.less"
  mv "$T/todo.less" "$T/todo"
}

apply_accounts() {
  rows account > "$T/wanted"
  [ ! -s "$S/conflicts" ] || flush_lookups
  recall_accounts
  plan_accounts
  awk -F '\t' '$1 ~ /^(conflict|barred)$/ { print $4, $2, $3, $5 }' OFS='\t' "$T/todo" | keep "$S/conflicts"
  # Ours from here on, before any of it is made: what is cut off half-way is finished next time.
  awk -F '\t' '
    s == "shells" { shell[$1] = $4; next }
    $1 ~ /^(new|mend|alter|change|same|barred)$/ { print $2, $3, "ready", $4, shell[$2] }
    $1 ~ /^(lock|locked|gone)$/ { print $2, $3, "locked", $4, $5 }' OFS='\t' s=shells "$T/wanted" s=todo "$T/todo" |
    sort | keep "$S/accounts.next"
  # One that is ours and in conflict now stays ours.
  awk -F '\t' 'NR == FNR { known[$1] = 1; next } !($1 in known) { $3 = "locked"; print }' OFS='\t' \
    "$S/accounts.next" "$T/ours" | sort - "$S/accounts.next" | keep "$S/accounts"
  rm -f "$S/accounts.next"
  awk -F '\t' '
    $1 ~ /^(new|mend|lock)$/ { print $1, $2, $3, $6 }
    $1 ~ /^(alter|change)$/ || ($1 == "same" && $7 == "unmarked") { print "open", $2, $3, $6 }' OFS='\t' "$T/todo" > "$T/edits"
  edit_account_files 2> "$T/out" || problem account "the accounts cannot be written: $(first_output)"
  end_processes
  make_homes
}

# Whole or not at all, and by whichever host is first where homes are shared. Two processes a home: there may be hundreds.
make_homes() {
  local new="/home/.andromeda-$$-$host"
  # Of scripts that were killed here: one runs at a time on a host.
  rm -rf /home/.andromeda-*-"$host"
  while IFS="$tab" read -r name uid state _; do
    [ "$state" = ready ] && [ ! -e "/home/$name" ] || continue
    [ -d "$new" ] || mkdir "$new" || { problem home "$new cannot be made"; return 0; }
    { if [ -d /etc/skel ]; then cp -R /etc/skel "$new/$name"; else mkdir "$new/$name"; fi && chown -R "$uid:$uid" "$new/$name"; } > "$T/out" 2>&1 ||
      { problem home "/home/$name cannot be made: $(first_output)"; rm -rf "$new/$name"; }
  done < "$S/accounts"
  [ -d "$new" ] || return 0
  # None is left over where every one failed.
  for name in "$new"/*; do [ ! -d "$name" ] || { chmod 700 "$new"/* && mv -n -t /home "$new"/*; break; }; done > "$T/out" 2>&1 ||
    problem home "homes cannot be made: $(first_output)"
  rm -rf "$new"
}

# Those who are locked have no processes here; whoever else has their number by now keeps theirs.
locked_uids() {
  awk 's == "ours" { if ($3 == "locked") name[$2] = $1; next } $3 in name && $1 != name[$3] { delete name[$3] }
    END { for (uid in name) print uid }' FS='\t' s=ours "$1" FS=: s=passwd /etc/passwd | paste -s -d , -
}
end_processes() {
  local uids tries
  uids=$(locked_uids "$S/accounts")
  [ -n "$uids" ] || return 0
  for tries in 1 2 3 4 5 6 7 8 9 10; do
    pkill -KILL -U "$uids" || pkill -KILL -u "$uids" || return 0
    sleep 0.2
  done
  problem process 'a process of someone who left does not end'
}
`;
