# Deletes backup files beneath the folder $1, once somebody has said yes.
#
# Looks, asks, acts, in this order: the answer comes to a new run, which looks again, finds the same,
# asks the same and reads the answer at once. See docs/talking-back.md.
set -euo pipefail
export LC_ALL=C.UTF-8

say() { printf '%s\n' "$1" >&"$TWODOOR_FD"; }

# A text as JSON.
quoted() {
    local text=${1//\\/\\\\}
    text=${text//\"/\\\"}
    printf '"%s"' "${text//[[:cntrl:]]/?}"
}

# Whether the person says yes; no and no answer are the same here.
confirmed() {
    local answer=
    say "{\"ask\":\"delete\",\"message\":$(quoted "$1")}"
    read -r -u "$TWODOOR_FD" answer || true
    [[ $answer == '{"answer":{"action":"accept","content":{"confirm":true}}}' ]]
}

mapfile -d '' -t files < <(find "$1" -xdev -type f \( -name '*~' -o -name '*.bak' \) -print0 | sort -z)
count=${#files[@]}
if ((count == 0)); then
    echo "No backup files beneath $1."
    exit
fi

names=$(printf '%s, ' "${files[@]:0:10}")
names=${names%, }
((count <= 10)) || names+=" and $((count - 10)) more"
if ! confirmed "Delete $count backup files? $names"; then
    echo "Nothing was deleted: the person did not agree."
    exit
fi

deleted=0
for file in "${files[@]}"; do
    rm -- "$file"
    deleted=$((deleted + 1))
    say "{\"progress\":$deleted,\"total\":$count,\"message\":$(quoted "deleted $file")}"
done
say "{\"log\":\"info\",\"logger\":\"tidy\",\"message\":\"$deleted files deleted\"}"
echo "Deleted $deleted backup files."
