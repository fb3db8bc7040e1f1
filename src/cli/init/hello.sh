#!/bin/sh
# One action, `show`. Prints one JSON value: the greeting, or what was wrong with the call.

usage() {
  printf '{"error":{"code":"usage","message":"%s","details":{}}}\n' "$1"
  echo "usage: hello show --name=NAME" >&2
  exit 2
}

[ "${1-}" = show ] || usage "the action is show"
shift
name=
for argument; do
  case $argument in
    --name=*) name=${argument#--name=} ;;
    *) usage "the only flag is --name=NAME" ;;
  esac
done
[ -n "$name" ] || usage "--name is required"
# What would have to be escaped in JSON is in no name.
case $name in
  *[[:cntrl:]]* | *\"* | *\\*) usage "a name has no quotes, backslashes or control characters" ;;
esac
printf '{"greeting":"Hello, %s!"}\n' "$name"
