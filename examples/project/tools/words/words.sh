#!/bin/sh
# Counts lines, words and characters of a text file; one JSON object on standard output.
set -u

failed() {
  printf '{"error":{"code":"%s","message":"%s","details":{}}}\n' "$1" "$2"
  exit "$3"
}

path=
for argument; do
  case $argument in
    --path=*) path=${argument#--path=} ;;
    *) failed usage "unrecognized arguments: only --path is known" 2 ;;
  esac
done
[ -n "$path" ] || failed usage "the following arguments are required: --path" 2
case $(realpath -- "$path" 2>/dev/null) in
  "$(pwd -P)"/* | "") ;;
  *) failed invalid_argument "the path leads out of the project" 2 ;;
esac
[ -f "$path" ] || failed not_found "there is no such file" 1

LC_ALL=C.UTF-8 wc -lwm <"$path" | {
  read -r lines words characters || failed unreadable "the file cannot be read" 1
  printf '{"lines":%d,"words":%d,"characters":%d}\n' "$lines" "$words" "$characters"
}
