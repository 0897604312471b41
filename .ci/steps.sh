# Steps of a script that sources this, some beside others. Its last lines say what each step took, what failed and
# what is unstable.

scratch=$(mktemp -d)
mkdir "$scratch/steps" "$scratch/tests"
declare -A beside_pids=()
track=main        # which of the functions that run at the same time this is
failed_track=main
finished=
trap 'leave $?' EXIT

step() {
    printf '\n== %s (after %d s)\n' "$*" "$SECONDS"
    printf '%s' "$*" >"$scratch/steps/$track"
    printf '%d\t%s\t%s\n' "$SECONDS" "$track" "$*" >>"$scratch/steps.tsv"
}

# Ends the last step of a track, for the table of times.
end_track() {
    printf '%d\t%s\t\n' "$SECONDS" "$track" >>"$scratch/steps.tsv"
}

# beside NAME: runs the function NAME at the same time as what follows. Its output is kept for `join NAME`,
# which waits for it, prints the output, and fails if the function failed.
beside() {
    set -m # a process group of its own: `leave` ends it with all that it has started
    (
        set +m
        trap - EXIT # bash would run it here too, if a signal ends this
        track=$1
        "$1"
        end_track
    ) >"$scratch/$1.log" 2>&1 </dev/null &
    set +m
    beside_pids[$1]=$!
}

join() {
    local status=0
    wait "${beside_pids[$1]}" || status=$?
    unset "beside_pids[$1]"
    cat "$scratch/$1.log"
    if [ "$status" -ne 0 ]; then
        failed_track=$1
        exit "$status"
    fi
}

# suite NAME COMMAND...: runs a command that runs pytest. Tests that fail have a second chance.
suite() {
    local plugin="-p tests.second_chance --second-chance=$scratch/tests/$1"
    PYTEST_ADDOPTS="${PYTEST_ADDOPTS:-} $plugin" "${@:2}"
}

finish() {
    finished=yes
    exit 0
}

# What still runs is ended, and what it has said so far is printed. The report is the last.
leave() {
    local name
    trap - EXIT
    set +e
    for name in "${!beside_pids[@]}"; do
        kill -- "-${beside_pids[$name]}"
        cat "$scratch/$name.log"
    done
    report
    rm -rf "$scratch"
    exit "$1"
}

# The steps in the order in which they started: when, how long, and beside what.
times() {
    printf '\n== seconds\n   start    took\n'
    awk -F '\t' '
        $2 in last { took[last[$2]] = $1 - start[last[$2]]; delete last[$2] }
        $3 != "" { count++; start[count] = $1; name[count] = $3 ($2 == "main" ? "" : "  (beside)"); last[$2] = count }
        END { for (i = 1; i <= count; i++) printf "%8d%8s  %s\n", start[i], (i in took) ? took[i] : "?", name[i] }
    ' "$scratch/steps.tsv"
}

report() {
    local directory
    end_track
    times
    for directory in "$scratch"/tests/*/; do
        if [ -z "$finished" ] && [ -s "$directory/failed.txt" ]; then
            printf '\n== failed in %s\n' "$(basename "$directory")"
            cat "$directory/failed.txt"
        fi
        if [ -s "$directory/unstable.txt" ]; then
            printf '\n== unstable in %s: failed, then passed alone\n' "$(basename "$directory")"
            cat "$directory/unstable.txt"
        fi
    done
    if [ -n "$finished" ]; then
        printf '\n== passed after %d s\n' "$SECONDS"
    else
        printf '\n== FAILED after %d s: %s\n' "$SECONDS" "$(cat "$scratch/steps/$failed_track")"
    fi
}
