package event

// Stage is a kind of work that takes time.
type Stage uint8

// The stages. Those up to StageSend are the TTFT components in drawing order. The others are parts of a
// component or lie outside TTFT.
const (
	StageNone Stage = iota
	StageLoad
	StageReceive // from the first byte of a request to its tokenization
	StageQueue
	StagePacedByOthers // wait for slots that paced requests held, while these waited on purpose, or for a paused engine
	StageTokenize
	StageEmbed
	StagePrompt // prefill layers
	StageFirst  // LM head and sampling of the first token
	StageHostToDevice
	StageDeviceToHost
	StageSend // from the first token to the next byte of the answer; TTFT then includes it

	StageLoadOpen      // of StageLoad
	StageLoadMap       // of StageLoad
	StageLoadTokenizer // of StageLoad
	StageLoadWeights   // of StageLoad: preparing tensors and buffers
	StageLoadWarmup    // of StageLoad
	StageLoadPart      // of StageLoad: any other part, named by the event
	StageAttention     // of StagePrompt (per layer) or of a step
	StageRouter        // of StagePrompt (per layer) or of a step
	StageExperts       // of StagePrompt (per layer) or of a step; includes the feed-forward of dense layers
	StageHead          // LM head: of StageFirst or of a step
	StageSample        // of StageFirst or of a step
	StageThinking      // from the first token of reasoning to the next token of the answer, without pacing; after the first token
	StagePace          // deliberate wait between tokens; excluded from TPOT, throughput and stalls
	NumStages
)

var stageNames = [NumStages]string{
	"none", "model_load", "receive", "queue", "paced_by_others", "tokenize", "embed", "prompt", "first_token", "host_to_device",
	"device_to_host", "send",
	"load_open", "load_map", "load_tokenizer", "load_weights", "load_warmup", "load_part",
	"attention", "router", "experts", "lm_head", "sample", "thinking", "pace",
}

// String returns the stage's name in reports, event lines and CSV.
func (s Stage) String() string { return nameOf(stageNames[:], s) }

// StageByName returns the stage of a name; false if absent.
func StageByName(name string) (Stage, bool) {
	for s, n := range stageNames {
		if n == name && s != 0 {
			return Stage(s), true
		}
	}
	return StageNone, false
}

// Components returns the TTFT components in drawing order.
func Components() []Stage {
	return []Stage{
		StageLoad, StageReceive, StageQueue, StagePacedByOthers, StageTokenize, StageEmbed, StagePrompt, StageFirst,
		StageHostToDevice, StageDeviceToHost, StageSend,
	}
}

// Component returns the name of a TTFT component: the rest of TTFT is "other".
func (s Stage) Component() string {
	if s == StageNone {
		return "other"
	}
	return s.String()
}

// Split is the time of one forward pass by part, in ns. Each part saturates at about 4.3 s.
type Split struct {
	Embed, Attention, Router, Experts, Head, Sample uint32
}

// HasPass reports whether the time of the pass is known, and not only that of sampling.
func (s *Split) HasPass() bool { return *s != (Split{Sample: s.Sample}) }

// Parts returns its parts in the order of the fields.
func (s *Split) Parts() [6]*uint32 {
	return [...]*uint32{&s.Embed, &s.Attention, &s.Router, &s.Experts, &s.Head, &s.Sample}
}
