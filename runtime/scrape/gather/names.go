package gather

import (
	"github.com/llmtop/llmtop/runtime/scrape/identify"
)

// Prefixes are how the names of all metrics begin that are known, the process's own left out.
var Prefixes = []string{"vllm:", "sglang:", "llamacpp:", "tgi_", "trtllm", "lmdeploy:", "nv_inference_", "nv_trt_llm_", "dynamo_frontend_"}

// Started is the metric that tells when a process has begun, whatever it is.
const Started = "process_start_time_seconds"

// KindOf is the kind of engine that a metric is of; false if its name is not known.
func KindOf(name string) (identify.Kind, bool) {
	k, ok := owners[name]
	return k, ok
}

// owners are the kinds of engines by the names of their samples.
var owners = func() map[string]identify.Kind {
	out := make(map[string]identify.Kind)
	for kind := range tables {
		for name := range New(kind).index {
			if name != Started {
				out[name] = kind
			}
		}
	}
	return out
}()
