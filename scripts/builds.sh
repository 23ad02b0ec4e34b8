# shellcheck shell=sh
# For scripts/test and scripts/test-sanitizers, which read this file from the top of the tree: build
# a folder and run suites of it, then sum up. TEST_RESULTS names a file that collects the results of
# several scripts; the one that set it sums up.

results=${TEST_RESULTS:-$(mktemp)}
[ -n "${TEST_RESULTS:-}" ] || trap 'rm -f "$results" "$results.said"' EXIT
trap 'exit 1' HUP INT TERM

# Builds a folder, all of it or what the suites need, and runs its suites. A build that fails counts
# as one test that failed.
run() { # all or needed, folder, meson options, suites with their budgets in seconds
    what=$1
    shift
    echo
    echo "== building $1"
    # shellcheck disable=SC2086
    if { [ -f "$1/build.ninja" ] || meson setup "$1" $2; } &&
        { [ "$what" = needed ] || ninja -C "$1"; }; then
        ./scripts/run_suites $([ "$what" = all ] || echo --build) "$1" "$results" $3 ||
            printf 'failed\t%s\t-\tsuites\tcould not be run\n' "$1" >>"$results"
    else
        printf 'failed\t%s\t-\tbuild\tdoes not build\n' "$1" >>"$results"
    fi
}

# The last line is "N passed, N failed".
sum_up() {
    [ -n "${TEST_RESULTS:-}" ] || ./scripts/run_suites --sum "$results"
}
