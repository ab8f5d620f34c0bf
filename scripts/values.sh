#!/usr/bin/env bash
# Counts, for each way to watch an engine, how many of the values that the built-in engine reports its report has, and
# prints a Markdown table:
#
#	scripts/values.sh                      # all, about 3 minutes
#	scripts/values.sh socket5 vllm         # only some
#	scripts/values.sh -v socket5           # and the names of the values that are absent
#	scripts/values.sh list                 # their names
#	LLMTOP=path scripts/values.sh          # with this llmtop instead of one built from the source
#
# A value is a leaf of the JSON report that is not null; a list that is not empty counts once. Programs that are not
# installed (docs/testing.md) have no number in their row. Needs jq, curl and python3. Servers listen on 127.0.0.1.
set -uo pipefail
cd "$(dirname "$0")/.."

verbose=""
[[ ${1:-} == -v ]] && verbose=1 && shift
all=(builtin socket5 socket20 socket60 llama_http llama_pid llama_proxy ollama vllm prometheus otlp)
if [[ ${1:-} == list ]]; then
	printf '%s\n' "${all[@]}"
	exit
fi

scratch=$(mktemp -d)
data=scripts/testdata/values
seconds=${SECONDS_EACH:-8} # watched, after the engine is ready
running=()
end() { # kills what has not ended after ten seconds
	local p
	for p in "${running[@]}"; do kill "$p" 2>/dev/null; done
	for p in "${running[@]}"; do
		for _ in {1..100}; do kill -0 "$p" 2>/dev/null && sleep 0.1 || break; done
		kill -KILL "$p" 2>/dev/null
		wait "$p" 2>/dev/null
	done
	running=()
}
trap 'end; rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM

llmtop=${LLMTOP:-$scratch/llmtop}
[[ ${LLMTOP:-} ]] || go build -o "$llmtop" . || exit 2
export XDG_RUNTIME_DIR=$scratch LLMTOP_LISTEN="" # finds no engine but those of this script

start() { # COMMAND...: starts a program that ends with its row
	"$@" >>"$scratch/log" 2>&1 &
	running+=($!)
}
port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
await() { # URL: until it answers, for at most a minute
	for ((i = 0; i < 300; i++)); do
		curl -sf -o /dev/null "$1" && return
		sleep 0.2
	done
	why="$1 does not answer"
	return 1
}
has() { # VARIABLE: whether a real program is installed
	[[ ${!1:-} && -x ${!1} ]] || {
		why="not installed: $1 is not set"
		return 1
	}
}
watch() { "$llmtop" attach --headless --for "${seconds}s" --out "$scratch/report.json" "$@" >>"$scratch/log" 2>&1; }
ask() { # URL MODEL: sends requests, one after another
	for ((i = 0; i < 40; i++)); do
		curl -s -N -o /dev/null "$1/v1/chat/completions" -H 'Content-Type: application/json' \
			-d '{"model":"'"$2"'","max_tokens":48,"stream":true,"messages":[{"role":"user","content":"In the beginning '"$i"'"}]}'
		sleep 0.1
	done
}
model() { # the built-in model, as a file
	[[ -f $scratch/model.gguf ]] || go run "./$data" >"$scratch/model.gguf"
}

builtin() { "$llmtop" run --headless --seed 1 -p 'In the beginning' -p 'And God said' -n 200 --out "$scratch/report.json" >/dev/null 2>>"$scratch/log"; }
socket() {
	[[ -d $scratch/toy-moe ]] || python3 -B sdk/python/testdata/toy.py "$scratch/toy-moe"
	LLMTOP_LISTEN=unix:$scratch/engine.sock start python3 -B sdk/python/testdata/run.py "$1" "$((seconds + 4))" "$scratch/toy-moe"
	for ((i = 0; i < 100; i++)); do [[ -S $scratch/engine.sock ]] && break || sleep 0.1; done
	watch "unix:$scratch/engine.sock"
}
socket5() { socket 5; }
socket20() { socket 20; }
socket60() { socket 60; }

llama_server() {
	has LLMTOP_PEER_LLAMA_SERVER && model || return 1
	at=$(port)
	start "$LLMTOP_PEER_LLAMA_SERVER" --model "$scratch/model.gguf" --host 127.0.0.1 --port "$at" --metrics
	server=${running[-1]}
	await "http://127.0.0.1:$at/health"
}
llama_http() { llama_server && start ask "http://127.0.0.1:$at" llmtop && watch "http://127.0.0.1:$at"; }
llama_pid() { llama_server && start ask "http://127.0.0.1:$at" llmtop && watch "pid:$server"; }
llama_proxy() {
	llama_server || return 1
	local front
	front=$(port)
	start "$llmtop" proxy --listen "127.0.0.1:$front" --headless --out "$scratch/report.json" --to "http://127.0.0.1:$at"
	local proxy=${running[-1]}
	await "http://127.0.0.1:$front/health" || return 1
	start ask "http://127.0.0.1:$front" llmtop
	sleep "$seconds"
	kill -INT "$proxy"
	wait "$proxy" 2>/dev/null
}
ollama() {
	has LLMTOP_PEER_OLLAMA && model || return 1
	at=$(port)
	OLLAMA_HOST=127.0.0.1:$at HOME=$scratch OLLAMA_MODELS=$scratch/models OLLAMA_NO_CLOUD=1 start "$LLMTOP_PEER_OLLAMA" serve
	await "http://127.0.0.1:$at/api/version" || return 1
	local digest
	digest=sha256:$(sha256sum "$scratch/model.gguf" | cut -d' ' -f1)
	curl -sf -T "$scratch/model.gguf" -X POST "http://127.0.0.1:$at/api/blobs/$digest" &&
		curl -sf -o /dev/null "http://127.0.0.1:$at/api/create" -d '{"model":"demo","files":{"demo.gguf":"'"$digest"'"},"stream":false}' ||
		{ why="ollama takes no model"; return 1; }
	start ask "http://127.0.0.1:$at" demo
	watch "http://127.0.0.1:$at"
}
fake() {
	at=$(port)
	start python3 "$data/server.py" "$at" runtime/source/scrape/gather/testdata/vllm.txt
	await "http://127.0.0.1:$at/version"
}
vllm() { fake && watch "http://127.0.0.1:$at"; }
prometheus() {
	has LLMTOP_PEER_PROMETHEUS && fake || return 1
	local front
	front=$(port)
	echo "global: {scrape_interval: 1s}
scrape_configs: [{job_name: vllm, static_configs: [{targets: ['127.0.0.1:$at']}]}]" >"$scratch/prometheus.yml"
	start "$LLMTOP_PEER_PROMETHEUS" --config.file="$scratch/prometheus.yml" --storage.tsdb.path="$scratch/tsdb" --web.listen-address="127.0.0.1:$front"
	await "http://127.0.0.1:$front/-/ready" || return 1
	sleep 4 # scrapes
	watch "prometheus+http://127.0.0.1:$front"
}
spans() { # URL: sends traces of requests in vLLM's form
	for ((i = 1; i <= 20; i++)); do
		python3 - "$i" <<'END' | curl -s -o /dev/null "$1" -H 'Content-Type: application/json' -d @-
import json, sys, time
i, now = int(sys.argv[1]), time.time_ns()
kv = lambda k, v: {"key": k, "value": {"stringValue": v} if isinstance(v, str) else {"intValue": str(v)} if isinstance(v, int) else {"doubleValue": v}}
facts = {"latency.time_to_first_token": 0.12, "latency.e2e": 0.9, "latency.time_in_queue": 0.02, "latency.time_in_model_prefill": 0.09,
         "latency.time_in_model_decode": 0.78, "usage.prompt_tokens": 40, "usage.completion_tokens": 60, "request.max_tokens": 64,
         "request.id": "r%d" % i, "response.model": "Qwen/Qwen3-30B-A3B"}
span = {"traceId": "%032x" % (now + i), "spanId": "%016x" % i, "name": "llm_request", "startTimeUnixNano": str(now - 900_000_000),
        "endTimeUnixNano": str(now), "attributes": [kv("gen_ai." + k, v) for k, v in facts.items()]}
print(json.dumps({"resourceSpans": [{"resource": {"attributes": [kv("service.name", "vllm")]}, "scopeSpans": [{"spans": [span]}]}]}))
END
		sleep 0.3
	done
}
otlp() {
	at=$(port)
	start spans "http://127.0.0.1:$at/v1/traces"
	watch --otlp "127.0.0.1:$at"
}

leaves() { # FILE: the names of its values
	jq -r 'def leaves($p): if type == "object" then to_entries[] | .key as $k | .value | leaves($p + [$k])
		elif type == "array" then select(length > 0) | $p | join(".") elif . == null then empty else $p | join(".") end;
		leaves([])' "$1" | LC_ALL=C sort -u
}

[[ $# -gt 0 ]] || set -- "${all[@]}"
for source; do
	if [[ " ${all[*]} " != *" $source "* ]]; then
		echo "values: no such source: $source; see: scripts/values.sh list" >&2
		exit 2
	fi
done
builtin && leaves "$scratch/report.json" >"$scratch/all" || { cat "$scratch/log" >&2; exit 1; }
total=$(wc -l <"$scratch/all")
echo "| source | values of $total |"
echo "|---|---|"
code=0
for source; do
	rm -f "$scratch/report.json" "$scratch/engine.sock"
	: >"$scratch/log"
	why=""
	if "$source" && leaves "$scratch/report.json" >"$scratch/have" 2>>"$scratch/log"; then
		echo "| $source | $(LC_ALL=C comm -12 "$scratch/all" "$scratch/have" | wc -l) |"
		[[ $verbose ]] && LC_ALL=C comm -23 "$scratch/all" "$scratch/have" | sed 's/^/    /'
	else
		echo "| $source | ${why:-failed: $(tail -n 1 "$scratch/log")} |"
		[[ $why == "not installed"* ]] || code=1
	fi
	end
done
exit $code
