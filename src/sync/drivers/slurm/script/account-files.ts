/**
 * The account files of a host (passwd, group, shadow, gshadow, subuid, subgid), edited for any number of people in one go.
 * useradd and usermod flush the disk about twenty times for one person, so that two hundred people took minutes.
 */
export const accountFiles = String.raw`
# The comment names the cluster, in the field that only root can change: by it a host that lost its notes knows its own.
comment() { printf 'Andromeda,,,,%s' "$(rows id)"; }
today() { echo $(($(date +%s) / 86400)); }

# The locks of useradd and passwd: a file with our number in it. One whose holder is dead counts for nothing.
lock_account_files() {
  local file tries=0 holder
  for file in passwd group gshadow subuid subgid shadow; do
    [ -e "/etc/$file" ] || continue
    printf '%s' $$ > "/etc/$file.$$" || return 1
    until ln "/etc/$file.$$" "/etc/$file.lock" 2> /dev/null; do
      holder=$(tr -d '\0' < "/etc/$file.lock" 2> /dev/null)
      tries=$((tries + 1))
      if [ $tries -gt 60 ]; then
        rm -f "/etc/$file.$$"
        echo "/etc/$file is locked by the process $holder" >&2
        return 1
      fi
      if [ -n "$holder" ] && ! kill -0 "$holder" 2> /dev/null; then rm -f "/etc/$file.lock"; else sleep 0.5; fi
    done
    rm -f "/etc/$file.$$"
  done
}
unlock_account_files() {
  local file
  for file in passwd group gshadow subuid subgid shadow; do
    [ "$(tr -d '\0' 2> /dev/null < "/etc/$file.lock")" != $$ ] || rm -f "/etc/$file.lock"
  done 2> /dev/null
}

# Makes the files by $T/edits: lines of new|mend|open|lock|drop, name, uid, shell. passwd is last: who is there is whole.
edit_account_files() {
  local file status=0
  [ -s "$T/edits" ] || return 0
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
  awk -v file="$1" -v comment="$(comment)" -v today="$(today)" '
    function fresh(name) {
      if (file == "passwd") return name ":x:" uid[name] ":" uid[name] ":" comment ":/home/" name ":" shell[name]
      if (file == "shadow") return name ":*:" today ":::::" (what[name] == "lock" ? 1 : "") ":"
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
      return !(name in seen) && (what[name] ~ /^(new|mend)$/ || (file == "shadow" && what[name] ~ /^(open|lock)$/))
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
    s == "defs" { defs[$1] = $2; next }
    s == "edits" { what[$2] = $1; uid[$2] = $3; shell[$2] = $4; order[++size] = $2; next }
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
      if (file ~ /^g/ ? $1 in group && group[$1] != uid[$1] : $1 in person && person[$1] != uid[$1]) print
      next
    }
    # What is left of another who had the name is not taken over.
    (what[$1] == "new" && file ~ /^sub/) || (what[$1] ~ /^(new|mend)$/ && file ~ /shadow/) { next }
    { seen[$1] = 1 }
    file == "passwd" && what[$1] ~ /^(open|mend)$/ { $5 = comment; $7 = shell[$1] }
    file == "shadow" && what[$1] == "lock" { $8 = 1 }
    file == "shadow" && what[$1] == "open" {
      if ($2 ~ /^!/) $2 = "*"
      if ($3 == "0" || ($5 != "" && $3 + $5 < today)) { $3 = today; $5 = ""; $7 = "" }
      $8 = ""
    }
    { print }
    END { add_missing() }' FS='[ \t]+' s=defs $defs FS='\t' s=edits "$T/edits" FS=: OFS=: s=passwd /etc/passwd s=group /etc/group \
    s=ranges "/etc/$1" s= "/etc/$1"
}
`;
