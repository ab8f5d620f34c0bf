package verdict

import "strings"

// Phrases of remedies whose settings only some engines have.
const (
	smallerChunks = "smaller prompt chunks"
	moreKV        = "more memory for the KV cache"
	shorterDrafts = "shorter drafts"
)

// settings gives the names that engines have for the flags of llmtop in remedies, as pairs for strings.NewReplacer.
// They are those of the servers' own command lines and environments.
var settings = map[string]*strings.Replacer{
	"llama.cpp": strings.NewReplacer("--parallel", "-np", "--ctx", "-c", "--threads", "-t", smallerChunks, smallerChunks+" (-ub)", shorterDrafts, shorterDrafts+" (--spec-draft-n-max)"),
	"Ollama":    strings.NewReplacer("--parallel", "OLLAMA_NUM_PARALLEL", "--ctx", "OLLAMA_CONTEXT_LENGTH"),
	"vLLM": strings.NewReplacer("--parallel", "--max-num-seqs", "--ctx", "--max-model-len",
		smallerChunks, smallerChunks+" (--max-num-batched-tokens)", moreKV, moreKV+" (--gpu-memory-utilization)", shorterDrafts, shorterDrafts+" (num_speculative_tokens)"),
	"SGLang": strings.NewReplacer("--parallel", "--max-running-requests", "--ctx", "--context-length",
		smallerChunks, smallerChunks+" (--chunked-prefill-size)", moreKV, moreKV+" (--mem-fraction-static)", shorterDrafts, shorterDrafts+" (--speculative-num-steps)"),
	"TGI": strings.NewReplacer("--parallel", "--max-batch-size", "--ctx", "--max-total-tokens",
		smallerChunks, smallerChunks+" (--max-batch-prefill-tokens)", moreKV, moreKV+" (--cuda-memory-fraction)"),
	"TensorRT-LLM": strings.NewReplacer("--parallel", "--max_batch_size", "--ctx", "--max_seq_len",
		smallerChunks, smallerChunks+" (--max_num_tokens)", moreKV, moreKV+" (--kv_cache_free_gpu_memory_fraction)"),
	"LMDeploy": strings.NewReplacer("--parallel", "--max-batch-size", "--ctx", "--session-len",
		smallerChunks, smallerChunks+" (--max-prefill-token-num)", moreKV, moreKV+" (--cache-max-entry-count)"),
}

// unnamed leaves the flags out.
var unnamed = strings.NewReplacer(" (--parallel)", "", " (--ctx)", "", " --threads", " the number of threads")

// Remedy returns a remedy with the settings of an engine by its name; "" is an engine that llmtop runs.
func Remedy(engine, words string) string {
	switch r := settings[engine]; {
	case engine == "":
		return words
	case r == nil:
		return unnamed.Replace(words)
	default:
		return r.Replace(words)
	}
}
