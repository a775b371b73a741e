#!/usr/bin/env bash
# A PostgreSQL server for the tests, in a scratch folder, on a unix socket.
#
#   postgres.sh start   prints DATABASE_URL=… for the tests' environment
#   postgres.sh stop    stops the server and removes the folder
#   postgres.sh find    prints PG_BIN=… and PGBOUNCER=…, and installs what is missing
#
# Both are run from the same shell: its process names the folder. Runs the server as an
# unprivileged user when root, as the server demands. Nothing listens on the network.
set -euo pipefail

folder=${TMPDIR:-/tmp}/tower-idempotency-postgres.$PPID

main() {
    case ${1:-} in
    start) start ;;
    stop) stop ;;
    find) find_programs && printf 'PG_BIN=%s\nPGBOUNCER=%s\n' "$bin" "$pgbouncer" ;;
    *) sed -n '2,/^$/s/^# \{0,1\}//p' "$0" && exit 2 ;;
    esac
}

start() {
    find_programs >&2
    stop >&2
    mkdir -p "$folder/socket"
    ((EUID)) || chown -R nobody "$folder"
    unprivileged "$bin/initdb" --pgdata "$folder/data" --username postgres --auth trust \
        --encoding UTF8 --locale C --no-sync >&2
    # The tests' own servers test what a crash leaves; this one may be fast.
    cat >>"$folder/data/postgresql.conf" <<-END
	listen_addresses = ''
	unix_socket_directories = '$folder/socket'
	max_connections = 400
	fsync = off
	full_page_writes = off
	END
    unprivileged "$bin/pg_ctl" start --pgdata "$folder/data" --log "$folder/log" --wait >&2 || {
        cat "$folder/log" >&2
        exit 1
    }
    printf 'DATABASE_URL=postgres://postgres@%s/postgres\n' "${folder//\//%2F}%2Fsocket"
    printf 'PG_BIN=%s\nPGBOUNCER=%s\n' "$bin" "$pgbouncer"
}

stop() {
    [[ -d $folder ]] || return 0
    if [[ -f $folder/data/postmaster.pid ]]; then
        find_programs >&2
        unprivileged "$bin/pg_ctl" stop --pgdata "$folder/data" --mode immediate --wait || true
    fi
    rm -rf "$folder"
}

# On the path, or where Debian keeps them; else they are installed.
find_programs() {
    bin=$(server_programs) || {
        install_packages postgresql
        bin=$(server_programs) || missing 'PostgreSQL (initdb, pg_ctl)'
    }
    pgbouncer=$(pooler) || {
        install_packages pgbouncer
        pgbouncer=$(pooler) || missing pgbouncer
    }
}

server_programs() {
    local found
    for found in /usr/lib/postgresql/*/bin "$(dirname "$(command -v initdb || echo /none/initdb)")"; do
        if [[ -x $found/initdb && -x $found/pg_ctl && -x $found/postgres ]]; then
            newest=$found
        fi
    done
    [[ -n ${newest:-} ]] && echo "$newest"
}

pooler() {
    command -v pgbouncer || { [[ -x /usr/sbin/pgbouncer ]] && echo /usr/sbin/pgbouncer; }
}

# As root only: packages are the machine's.
install_packages() {
    ((EUID == 0)) || missing "$*"
    echo "installing $*"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends "$@"
}

missing() {
    echo "not found: $*. Install it, or name a database by DATABASE_URL." >&2
    exit 1
}

unprivileged() {
    if ((EUID)); then "$@"; else setpriv --reuid=nobody --regid=nogroup --clear-groups "$@"; fi
}

main "$@"
