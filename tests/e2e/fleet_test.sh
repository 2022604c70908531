#!/usr/bin/env bash
# Goal: daemons on several hosts give what the embedded lab gives: one table, with the hosts started together;
#       what Prometheus scrapes of them adds up to what the catalog holds; a controller killed in mid-run
#       carries on; an agent lost for good costs its own trials and no others.
# Method: four network namespaces on a bridge of this test: a controller and three agents, certificates on both
#         sides; `labrack run --controller`; a real Prometheus that finds its targets through /sd.
# usage: fleet_test.sh BIN_DIR      (exit 77: skipped, with the reason)
set -euo pipefail

bin=$1
name=lrk$$
work=$(mktemp -d)
pids=()

skip() {
  echo "skipped: $*"
  exit 77
}
die() {
  echo "FAILED: $*" >&2
  tail -n 20 "$work"/*.log >&2 || true
  exit 1
}

clean_up() {
  local pid
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
  # Workers and clients that a failed test left are in its namespaces, and nothing else is.
  local host
  for host in lab 1 2 3; do
    for pid in $(ip netns pids "$name-$host" 2>/dev/null); do kill -9 "$pid" 2>/dev/null || true; done
  done
  for host in lab 1 2 3; do ip netns del "$name-$host" 2>/dev/null || true; done
  ip link del "$name" 2>/dev/null || true
  rm -rf "$work"
}
trap clean_up EXIT

[ "$(id -u)" -eq 0 ] || skip "network namespaces need root"
for tool in ip openssl curl prometheus; do command -v "$tool" >/dev/null || skip "$tool is not installed"; done
ip link add "$name" type bridge 2>/dev/null || skip "this kernel gives no bridges"
ip link set "$name" up

# One namespace a host, each with an address of 10.77.0.0/24.
make_host() {
  local host=$1 address=$2
  ip netns add "$name-$host"
  ip link add "$name$host" type veth peer name eth0 netns "$name-$host"
  ip link set "$name$host" master "$name" up
  on "$host" ip addr add "$address/24" dev eth0
  on "$host" ip link set eth0 up
  on "$host" ip link set lo up
}
on() {
  local host=$1
  shift
  nsenter --net="/run/netns/$name-$host" "$@"
}
# Starts a daemon on a host; $! of a plain command is the daemon's own process id, which is what ends it.
start() {
  local host=$1 log=$2
  shift 2
  nsenter --net="/run/netns/$name-$host" "$@" >>"$work/$log" 2>&1 &
  pids+=("$!")
}
make_host lab 10.77.0.1
for host in 1 2 3; do make_host "$host" "10.77.0.1$host"; done

# An authority, and a certificate for each side.
certificate() {
  local who=$1 names=$2
  openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$work/$who.key" 2>/dev/null
  openssl req -new -subj "/CN=$who" -key "$work/$who.key" -out "$work/$who.csr"
  printf 'subjectAltName=%s\n' "$names" >"$work/$who.ext"
  openssl x509 -req -days 2 -CAcreateserial -in "$work/$who.csr" -CA "$work/ca.pem" -CAkey "$work/ca.key" \
    -extfile "$work/$who.ext" -out "$work/$who.pem" 2>/dev/null
}
openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$work/ca.key" 2>/dev/null
openssl req -x509 -new -days 2 -subj /CN=ca -key "$work/ca.key" -out "$work/ca.pem"
certificate controller IP:10.77.0.1
for host in 1 2 3; do certificate "st-$host" "URI:labrack://test/agent/st-$host"; done

cat >"$work/controller.yaml" <<YAML
state: $work/controller
agents_listen: 10.77.0.1:7481
heartbeat: 1s
tls: {ca: $work/ca.pem, certificate: $work/controller.pem, key: $work/controller.key}
YAML
start_controller() {
  start lab controller.log "$bin/labrack-controller" --config "$work/controller.yaml"
  controller=${pids[-1]}
}
start_controller
for host in 1 2 3; do
  cat >"$work/st-$host.yaml" <<YAML
controller: 10.77.0.1:7481
state: $work/st-$host
name: st-$host
metrics_listen: 10.77.0.1$host:7483
tls: {ca: $work/ca.pem, certificate: $work/st-$host.pem, key: $work/st-$host.key}
YAML
  start "$host" "st-$host.log" "$bin/labrack-agent" --config "$work/st-$host.yaml"
done

labrack() {
  on lab timeout 120 "$bin/labrack" "$@" --controller 127.0.0.1:7480
}
# Waits until a command succeeds, for at most so many tenths of a second.
within() {
  local tenths=$1
  shift
  until "$@"; do
    tenths=$((tenths - 1))
    [ "$tenths" -gt 0 ] || return 1
    sleep 0.1
  done
}
three_online() {
  [ "$(labrack host ls --json 2>/dev/null | grep -o '"ONLINE"' | wc -l)" -eq 3 ]
}
within 200 three_online || die "the three agents did not attach"

cat >"$work/fleet.yaml" <<YAML
playbook: fleet
hosts: {min: 3}
stacks: {one: {host: {dir: {}}}, two: {host: {dir: {}}}}
workloads: {pages: {sync_pages: {file: 4MiB, duration: 1s}}}
trials: 4
lost_after: 4s
gates: [{verified: all}]
YAML
labrack run "$work/fleet.yaml" --json "$work/report.json" >"$work/table.txt" 2>"$work/run.log" ||
  die "the run ended with $?"
cat "$work/table.txt"
grep -q '3 hosts' "$work/table.txt" || die "the table does not speak of three hosts"
grep -q 'start skew' "$work/table.txt" || die "the table does not say the skew"
field() { grep -o "\"$1\": *\"\\?-\\?[0-9.]*" "$work/report.json" | head -n 1 | grep -o '[0-9.]*$'; }
echo "skew: $(field start_skew_max_ns) ns, overlap: $(field overlap_min)"
awk -v overlap="$(field overlap_min)" 'BEGIN {exit !(overlap >= 0.95)}' || die "the windows overlap too little"

# Prometheus finds the agents by itself, and its sums are the catalog's.
cat >"$work/prometheus.yml" <<YAML
global: {scrape_interval: 500ms}
scrape_configs:
  - job_name: labrack
    http_sd_configs: [{url: "http://127.0.0.1:7482/sd", refresh_interval: 1s}]
YAML
start lab prometheus.log prometheus --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/tsdb" \
  --web.listen-address=127.0.0.1:9090
query() {
  on lab curl -sf --get --data-urlencode "query=$1" http://127.0.0.1:9090/api/v1/query |
    grep -o '"value":\[[^]]*\]' | grep -o '"[0-9.e+]*"\]' | tr -d '"]'
}
run_id=$(labrack ls --json 2>/dev/null | grep -o 'r-[0-9a-f]*' | head -n 1)
catalog_count=$(labrack export "$run_id" --as csv 2>/dev/null | awk -F, '
  NR == 1 {for (i = 1; i <= NF; i++) column[$i] = i; next}
  $column["operation"] == "write" {sum += $column["count"]}
  END {print sum + 0}')
[ "$catalog_count" -gt 0 ] || die "the catalog holds no writes"
same_sum() { [ "$(query 'sum(labrack_io_ops_total{op="write"})' || true)" = "$catalog_count" ]; }
within 300 same_sum ||
  die "Prometheus says $(query 'sum(labrack_io_ops_total{op="write"})' || true), the catalog $catalog_count"
echo "writes in Prometheus and in the catalog: $catalog_count"

# Runs the playbook in the background and returns once a trial of it is under way.
start_run() {
  labrack run "$work/fleet.yaml" --progress plain --json "$work/$1.json" >"$work/$1.txt" 2>"$work/$1.log" &
  run=$!
  under_way() { grep -q 'trial=2 .*state=running' "$work/$run_name.log"; }
  run_name=$1
  within 300 under_way || die "the run $1 did not get going"
}

# A controller that is killed is started again, and the run ends as if nothing had been.
start_run killed
kill -9 "$controller"
wait "$controller" 2>/dev/null || true
[ -z "$(ip netns pids "$name-lab" | grep -x "$controller")" ] || die "the controller outlived kill -9"
start_controller
status=0
wait "$run" || status=$?
[ "$status" -eq 0 ] || die "the run over a killed controller ended with $status"
grep -q '8 of 8 trials valid' "$work/killed.txt" || die "results were lost with the controller"
echo "a killed controller: $(head -n 1 "$work/killed.txt")"

# The third agent goes for good, with its worker.
start_run lost
third=$(ip netns pids "$name-3")
[ -n "$third" ] || die "there is no third agent to kill"
# shellcheck disable=SC2086  # a list of process ids
kill -9 $third
status=0
wait "$run" || status=$?
[ "$status" -eq 5 ] || die "a run with a lost agent ended with $status, not 5"
grep -q 'st-3.*\(lost\|silent\)' "$work/lost.txt" || {
  cat "$work/lost.txt" >&2
  die "the table does not say who was lost"
}
echo "a lost agent: exit $status; $(grep -m 1 'st-3' "$work/lost.txt")"
echo PASSED
