package gather

import (
	"slices"
	"strings"

	"github.com/llmtop/llmtop/runtime/source/scrape/identify"
)

// MetricPrefixes holds the name prefixes of all supported metrics, except ProcessStart.
var MetricPrefixes = []string{"vllm:", "sglang:", "llamacpp:", "tgi_", "trtllm", "lmdeploy:", "nv_inference_", "nv_trt_llm_", "dynamo_frontend_"}

// ProcessStart is the metric with the start time of a process, of any program.
const ProcessStart = "process_start_time_seconds"

// KindOf returns the kind of engine that has a metric; false if the name is not supported.
func KindOf(name string) (identify.Kind, bool) {
	k, ok := kindsBySample[name]
	return k, ok
}

// kindsBySample maps sample names to kinds of engines.
var kindsBySample = func() map[string]identify.Kind {
	out := make(map[string]identify.Kind)
	for kind := range aliasTables {
		for name := range indexes[kind].named {
			if slices.ContainsFunc(MetricPrefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
				out[name] = kind // others, of any program, do not show the kind
			}
		}
	}
	return out
}()
