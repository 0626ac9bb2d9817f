/** Unix accounts on a host: made, changed, locked; and what is there already and is not ours. */
export const accounts = String.raw`
# What is to be done, from what is ours, what is there, and what is wanted.
plan_accounts() {
  rows account > "$T/wanted"
  cut -f 4 "$T/wanted" | sort -u | while read -r shell; do
    use=$shell
    [ -f "$use" ] && [ -x "$use" ] || use=/bin/bash
    [ -x "$use" ] || use=/bin/sh
    say "$shell" "$use"
  done > "$T/shells"
  awk '
    function conflict(words) { print "conflict", $1, $2, $3, words }
    s == "ours" { uid[$1] = $2; who[$1] = $4; shell[$1] = $5; next }
    s == "passwd" { there[$1] = $3; group[$1] = $4; runs[$1] = $7; owner[$3] = $1; next }
    s == "shadow" { expires[$1] = $8; next }
    s == "shells" { use[$1] = $2; next }
    { wanted[$1] = 1 }
    $1 in uid && uid[$1] != $2 { conflict("the account " $1 " was made here with the uid " uid[$1] " before"); next }
    $1 in there && (!($1 in uid) || there[$1] != $2 || group[$1] != $2) {
      conflict("the account " $1 " (uid " there[$1] ") is there already and is not ours"); next
    }
    !($1 in there) && $2 in owner { conflict("the uid " $2 " belongs to the account " owner[$2] ", which is not ours"); next }
    !($1 in there) { print $1 in uid ? "mend" : "new", $1, $2, $3, $4, use[$4]; next }
    runs[$1] != use[$4] || expires[$1] != "" { print "alter", $1, $2, $3, $4, use[$4]; next }
    { print "same", $1, $2, $3, $4, use[$4] }
    END {
      for (name in uid) if (!(name in wanted)) {
        is = name in there && there[name] == uid[name]
        print is && expires[name] != "1" ? "lock" : is ? "locked" : "gone", name, uid[name], who[name], shell[name]
      }
    }' OFS='\t' FS='\t' s=ours "$S/accounts" FS=: s=passwd /etc/passwd s=shadow /etc/shadow \
    FS='\t' s=shells "$T/shells" s=wanted "$T/wanted" > "$T/todo"
  find_strangers
}

# New names and numbers that a directory service, a group or a home has already.
find_strangers() {
  awk -F '\t' '$1 == "new" { print $2; print $3 }' "$T/todo" > "$T/new"
  [ -s "$T/new" ] || return 0
  xargs getent passwd < "$T/new" | cut -d : -f 1,3 > "$T/people"
  xargs getent group < "$T/new" | cut -d : -f 1,3 > "$T/groups"
  awk -F '\t' '$1 == "new" { print "/home/" $2 }' "$T/todo" | xargs stat -c '%n:%u' 2> /dev/null > "$T/homes"
  awk '
    function conflict(words) { print "conflict", $2, $3, $4, words }
    s == "people" { person[$1] = 1; number[$2] = $1; next }
    s == "groups" { group[$1] = 1; gid[$2] = $1; next }
    s == "homes" { home[$1] = $2; next }
    $1 != "new" { print; next }
    $2 in person { conflict("a directory service has an account " $2 " that is not ours"); next }
    $3 in number { conflict("a directory service has the uid " $3 " for " number[$3] ", which is not ours"); next }
    $2 in group { conflict("the group " $2 " is there already and is not ours"); next }
    $3 in gid { conflict("the gid " $3 " belongs to the group " gid[$3] ", which is not ours"); next }
    ("/home/" $2) in home && home["/home/" $2] != $3 {
      conflict("/home/" $2 " belongs to the uid " home["/home/" $2] " and not to " $3); next
    }
    { print }' OFS='\t' FS=: s=people "$T/people" s=groups "$T/groups" s=homes "$T/homes" FS='\t' s=todo "$T/todo" \
    > "$T/todo.less"
  mv "$T/todo.less" "$T/todo"
}

apply_accounts() {
  plan_accounts
  awk -F '\t' '$1 == "conflict" { print $4, $2, $3, $5 }' OFS='\t' "$T/todo" | keep "$S/conflicts"
  # Ours from here on, before any of it is made: what is cut off half-way is finished next time.
  awk -F '\t' '
    $1 ~ /^(new|mend|alter|same)$/ { print $2, $3, "ready", $4, $5 }
    $1 ~ /^(lock|locked|gone)$/ { print $2, $3, "locked", $4, $5 }' OFS='\t' "$T/todo" | sort | keep "$S/accounts.next"
  # One that is ours and in conflict now stays ours.
  awk -F '\t' 'NR == FNR { known[$1] = 1; next } !($1 in known) { $3 = "locked"; print }' OFS='\t' \
    "$S/accounts.next" "$S/accounts" | sort - "$S/accounts.next" | keep "$S/accounts"
  rm -f "$S/accounts.next"
  while IFS="$tab" read -r what name uid user shell use; do
    case $what in
      lock) usermod -e 1 "$name" > "$T/out" 2>&1 9>&- || problem account "$name cannot be locked: $(first_words)" ;;
      new | mend) add_account || problem account "the account $name cannot be made: $(first_words)" ;;
      alter) usermod -e '' -s "$use" "$name" > "$T/out" 2>&1 9>&- || problem account "$name cannot be changed: $(first_words)" ;;
    esac
  done < "$T/todo"
  end_processes
  while IFS="$tab" read -r name uid state _; do
    [ "$state" != ready ] || [ -e "/home/$name" ] || make_home || problem home "/home/$name cannot be made: $(first_words)"
  done < "$S/accounts"
}

add_account() {
  if [ "$what" = mend ] && getent group "$name" > "$T/out"; then set -- -N -g "$uid"; else set -- -U -K "GID_MIN=$uid" -K "GID_MAX=$uid"; fi
  useradd "$@" -u "$uid" -d "/home/$name" -M -s "$use" -e '' -p '*' -c Andromeda "$name" > "$T/out" 2>&1 9>&-
}

# Whole or not at all, and by whichever host is first where homes are shared.
make_home() {
  local new="/home/.andromeda-$name-$$-$host"
  {
    if [ -d /etc/skel ]; then cp -R /etc/skel "$new"; else mkdir "$new"; fi &&
      chmod 700 "$new" && chown -R "$uid:$uid" "$new" && mv -nT "$new" "/home/$name"
  } > "$T/out" 2>&1
  [ ! -e "$new" ] || rm -rf "$new"
  [ -e "/home/$name" ]
}

# Those who are locked have no processes here.
end_processes() {
  local uids tries
  uids=$(awk -F '\t' '$3 == "locked" { print $2 }' "$S/accounts" | paste -s -d , -)
  [ -n "$uids" ] || return 0
  for tries in 1 2 3 4 5 6 7 8 9 10; do
    pkill -KILL -U "$uids" || pkill -KILL -u "$uids" || return 0
    sleep 0.2
  done
  problem process 'a process of someone who left does not end'
}
`;
