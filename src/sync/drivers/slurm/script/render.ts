/**
 * Our part of a Slurm configuration file: a block at its end between two marks. A line of the site's that sets the same
 * thing is kept, behind a mark that makes it a comment, so that taking our part away gives the site's file again.
 */
export const render = String.raw`
# render FILE BLOCK whole|keys: FILE with BLOCK in place of what was ours; an empty BLOCK gives the site's own file.
# whole: the block replaces all of the file. keys: it replaces the settings that it names.
render() {
  [ -f "$1" ] || { [ ! -s "$2" ] || block_marks "$2"; return 0; }
  site_part "$1" | awk -v block="$2" -v mode="$3" '
    function key_of(line) { line = tolower(line); if (line !~ /^[ \t]*[a-z]+[ \t]*=/) return ""; sub(/=.*/, "", line); gsub(/[ \t]/, "", line); return line }
    BEGIN {
      while ((getline line < block) > 0) { size++; if (!part) named[key_of(line)] = 1; part = line ~ /\\$/ }
      many = "^(|nodename|nodeset|downnodes|frontendname|slurmctldhost|include)$"
      part = 0
    }
    {
      key = key_of($0)
      if (!continued) hidden = size > 0 && (mode == "whole" ? $0 !~ /^[ \t]*(#|$)/ : key in named && key !~ many)
      continued = $0 ~ /\\$/
      print (hidden ? "#andromeda: " : "") $0
    }'
  [ ! -s "$2" ] || block_marks "$2"
}
block_marks() {
  printf '%s\n' '# BEGIN andromeda: written by the access service, what is changed between these lines is lost'
  # A block without a last newline must not swallow the mark.
  awk 1 "$1"
  printf '%s\n' '# END andromeda'
}

# site_part FILE: what the site wrote. A block whose end is missing is not taken for one.
site_part() {
  awk '
    /^# BEGIN andromeda/ && !inside { inside = 1; held = $0; next }
    inside && /^# END andromeda/ { inside = 0; next }
    inside { held = held "\n" $0; next }
    { sub(/^#andromeda: /, ""); print }
    END { if (inside) print held }' "$1"
}

# The site's own prolog or epilog, which slurm.conf can have only one of.
site_script() { # Prolog|Epilog
  [ ! -f "$conf" ] || { site_part "$conf" > "$T/site"; (conf=$T/site; conf_value "$1"); }
}
`;
