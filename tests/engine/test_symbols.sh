#!/bin/sh
# Guards that the engine and the handlers' interpreter are pure: their libraries leave only the symbols of a short
# list undefined (engine_symbols.txt, handlers_symbols.txt), without clock, socket, allocation or system call.
#
#     test_symbols.sh NM LIBRARY LIST FUNCTION    a function that the library defines
set -eu
nm=$1 library=$2 list=$3 function=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

"$nm" --defined-only "$library" | awk 'NF == 3 { print $3 }' | sort -u >"$work/defined"
"$nm" --undefined-only "$library" | awk 'NF == 2 && $1 == "U" { print $2 }' | sort -u |
    grep -v -e '^__asan' -e '^__ubsan' -e '^__tsan' -e '^__sanitizer' -e '^__gcov' \
        -e '^_GLOBAL_OFFSET_TABLE_$' >"$work/undefined"
grep -v -e '^#' -e '^$' "$list" | sort -u >"$work/allowed"
comm -23 "$work/undefined" "$work/defined" | comm -23 - "$work/allowed" >"$work/extra"

if ! grep -qx "$function" "$work/defined"; then
    echo "$library does not define $function: is this the right one?"
    exit 1
fi
if [ -s "$work/extra" ]; then
    echo "$library uses what $list does not allow:"
    cat "$work/extra"
    exit 1
fi
echo "$(comm -23 "$work/undefined" "$work/defined" | wc -l) undefined symbols, all allowed"
