/**
 * Values of the Slurm account, of people in it, and its coordinators, as the lab file has them. What was set by hand is neither
 * overwritten nor taken back, but shown: only a value that is unset, or is as we set it last ($S/limits), is ours to change.
 */
export const limits = String.raw`
limit_names='Fairshare MaxJobs GrpTRES DefaultQOS QOS'
# Of $T/associations, one a line: entity (. is the account), name, value.
limits_now() {
  awk -F '|' -v names="$limit_names" 'BEGIN { split(names, name, " ") }
    { for (i = 5; i <= NF; i++) print ($1 == "" ? "." : $1), name[i - 4], (name[i - 4] == "Fairshare" && $i == 1 ? "" : $i) }' \
    OFS='\t' "$T/associations" > "$T/limits-now"
}

# What is to be done with each value that is wanted or was: set|unset|hand|same ENTITY NAME VALUE [OTHER]
plan_limits() { # WANTED
  cat "$S/limits" > "$T/limits-noted" 2> /dev/null
  awk -F '\t' '
    function sorted(list, parts, n, i, j, swap) {
      n = split(list, parts, ",")
      for (i = 1; i <= n; i++) if (parts[i] ~ /^mem=/) parts[i] = "mem=" mebibytes(substr(parts[i], 5))
      for (i = 1; i <= n; i++) for (j = i + 1; j <= n; j++) if (parts[j] < parts[i]) { swap = parts[i]; parts[i] = parts[j]; parts[j] = swap }
      list = ""
      for (i = 1; i <= n; i++) list = list (i > 1 ? "," : "") parts[i]
      return list
    }
    # Slurm writes 2048000 as 2000G.
    function mebibytes(text, at) {
      at = index("MGTP", substr(text, length(text)))
      return at ? sprintf("%.0f", substr(text, 1, length(text) - 1) * 1024 ^ (at - 1)) : text
    }
    # What one list of resources has and the other does not is taken away by -1.
    function without(old, new, parts, n, i, name, all) {
      n = split(old, parts, ",")
      for (i = 1; i <= n; i++) { name = parts[i]; sub(/=.*/, "", name); if (index("," new, "," name "=") == 0) all = all "," name "=-1" }
      return new == "" ? substr(all, 2) : new all
    }
    s == "now" { now[$1, $2] = sorted($3); here[$1] = 1; next }
    s == "noted" { noted[$1, $2] = sorted($3); next }
    { want[$1, $2] = sorted($3) }
    END {
      for (key in want) {
        split(key, of, SUBSEP)
        if (!(of[1] in here)) continue
        if (now[key] == want[key]) print "same", of[1], of[2], want[key]
        else if (now[key] != "" && now[key] != noted[key] || key in noted && noted[key] == want[key]) print "hand", of[1], of[2], now[key], want[key]
        else print "set", of[1], of[2], of[2] == "GrpTRES" ? without(now[key], want[key]) : want[key], want[key]
      }
      for (key in noted) {
        split(key, of, SUBSEP)
        if (key in want || !(of[1] in here) || now[key] == "" || now[key] != noted[key]) continue
        print "unset", of[1], of[2], of[2] == "GrpTRES" ? without(now[key], "") : of[2] == "Fairshare" ? 1 : of[2] == "QOS" ? "" : -1
      }
    }' OFS='\t' s=now "$T/limits-now" s=noted "$T/limits-noted" s=wanted "$1" | sort
}

apply_limits() {
  rows limit > "$T/limits"
  [ -s "$T/limits" ] || [ -f "$S/limits" ] || has_rows coordinator || [ -f "$S/coordinators" ] || return 0
  keep "$S/limits-wanted" < "$T/limits"
  associations > "$T/associations" && limits_now && plan_limits "$T/limits" > "$T/limit-plan" || return 1
  # Before they are set, so that they are known as ours where we are cut off behind that.
  { cat "$S/limits-setting" 2> /dev/null; grep '^set' "$T/limit-plan"; } | sort -u | keep "$S/limits-setting"
  # Those of several people that are the same take one call.
  awk -F '\t' '/^(set|unset)/ { key = $3 "=" $4; if ($2 == ".") print ".", key; else all[key] = all[key] (all[key] == "" ? "" : ",") $2 }
    END { for (key in all) print all[key], key }' OFS='\t' "$T/limit-plan" > "$T/limit-calls"
  while IFS="$tab" read -r who what; do
    case $who in
      .) manager -i modify account where "name=$account" "cluster=$cluster" set "$what" > /dev/null ;;
      *) manager -i modify user where "name=$who" "cluster=$cluster" "account=$account" set "$what" > /dev/null ;;
    esac || problem accounting "Slurm does not take $what: $(manager_error)"
  done < "$T/limit-calls"
  associations > "$T/associations" && limits_now && plan_limits "$T/limits" > "$T/limit-after" || return 1
  # Ours are those that we set, now or before. What was so by hand already is not.
  awk -F '\t' '
    { key = $2 SUBSEP $3 }
    s == "noted" { noted[$1, $2] = $3; next }
    s == "plan" { if ($1 == "set") tried[key] = 1; next }
    $1 == "same" && (key in tried || key in noted) { print $2, $3, $4; next }
    key in noted { print $2, $3, noted[key] }' \
    OFS='\t' s=noted "$T/limits-noted" s=plan "$S/limits-setting" s=after "$T/limit-after" | keep "$S/limits"
  rm -f "$S/limits-setting"
  ! grep -q '^set\|^unset' "$T/limit-after" || problem accounting "limits are not as they should be yet: $(grep '^set\|^unset' "$T/limit-after" | head -n 3 | one_line)"
  case $failed in *' accounting '*) return 1 ;; esac
  apply_coordinators && rows limits | keep "$S/limits-digest"
}

# Those that were added by hand stay. Who has no association yet, for want of a key, waits for it; one whom Slurm does not take holds
# up no other.
apply_coordinators() {
  local name
  rows coordinator | sort > "$T/coordinators"
  cat "$S/coordinators" > "$T/coordinators-noted" 2> /dev/null
  manager -nP show account withcoord "name=$account" format=coordinators | tr , '\n' | sort > "$T/coordinators-now" || return 1
  cut -d '|' -f 1 "$T/associations" | sort -u | comm -12 - "$T/coordinators" | comm -23 - "$T/coordinators-now" > "$T/coordinators-new"
  comm -23 "$T/coordinators-noted" "$T/coordinators" | comm -12 - "$T/coordinators-now" > "$T/coordinators-old"
  comm -12 "$T/coordinators-noted" "$T/coordinators" > "$T/coordinators-done"
  while read -r name; do edit_coordinator add "$name" && echo "$name" >> "$T/coordinators-done"; done < "$T/coordinators-new"
  while read -r name; do edit_coordinator delete "$name" || echo "$name" >> "$T/coordinators-done"; done < "$T/coordinators-old"
  sort "$T/coordinators-done" | keep "$S/coordinators"
  case $failed in *' accounting '*) return 1 ;; esac
}
edit_coordinator() { manager -i "$1" coordinator "account=$account" "name=$2" > /dev/null || { problem accounting "$(manager_error)"; return 1; }; } # add|delete NAME

# What is set, with what the lab file has where that is another value.
observe_limits() {
  row limits; wanted=$line
  first "$S/limits-digest"; [ "$line" = "$wanted" ] || emit drift 'limits are not as the lab file has them'
  limits_now
  cat "$S/limits-wanted" > "$T/limits" 2> /dev/null
  plan_limits "$T/limits" > "$T/limit-plan"
  ! grep -q '^set\|^unset' "$T/limit-plan" || emit drift 'limits are not as they should be'
  awk -F '\t' 's == "plan" { if ($1 == "hand") { hand[$2, $3] = $5; if ($4 == "") print "limit", $2, $3, "", $5 } next }
    $3 != "" && ++count <= 500 { print "limit", $1, $2, $3 (($1, $2) in hand ? OFS hand[$1, $2] : "") }' OFS='\t' s=plan "$T/limit-plan" s= "$T/limits-now"
}
`;
