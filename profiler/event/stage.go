package event

// Stage is one kind of work that time goes to.
type Stage uint8

// The stages. Those down to StageDeviceToHost are the TTFT components, in the order in which they are drawn; those after are
// parts of a component or lie outside TTFT.
const (
	StageNone Stage = iota
	StageLoad
	StageQueue
	StageTokenize
	StageEmbed
	StagePrompt // prefill layers
	StageFirst  // LM head and sampling of the first token
	StageHostToDevice
	StageDeviceToHost

	StageLoadOpen      // of StageLoad
	StageLoadMap       // of StageLoad
	StageLoadTokenizer // of StageLoad
	StageLoadWeights   // of StageLoad: preparing tensors and buffers
	StageLoadWarmup    // of StageLoad
	StageLoadPart      // of StageLoad: another one, which the event names
	StageAttention     // of StagePrompt (per layer) or of a step
	StageRouter        // of StagePrompt (per layer) or of a step
	StageExperts       // of StagePrompt (per layer) or of a step; the feed-forward of a dense layer counts here
	StageHead          // LM head: of StageFirst or of a step
	StageSample        // of StageFirst or of a step
	StagePace          // waiting on purpose between tokens; excluded from TPOT, throughput and stalls
	NumStages
)

var stageNames = [NumStages]string{
	"none", "model_load", "queue", "tokenize", "embed", "prompt", "first_token", "host_to_device", "device_to_host",
	"load_open", "load_map", "load_tokenizer", "load_weights", "load_warmup", "load_part",
	"attention", "router", "experts", "lm_head", "sample", "pace",
}

// String is the stage's name in reports, event streams and CSV.
func (s Stage) String() string {
	if s < NumStages {
		return stageNames[s]
	}
	return "unknown"
}

// StageByName is the inverse of String; false for a name that is not a stage.
func StageByName(name string) (Stage, bool) {
	for s, n := range stageNames {
		if n == name && s != 0 {
			return Stage(s), true
		}
	}
	return StageNone, false
}

// Components are the TTFT components in drawing order; "other" is what they leave of TTFT.
func Components() []Stage {
	return []Stage{
		StageLoad, StageQueue, StageTokenize, StageEmbed, StagePrompt, StageFirst, StageHostToDevice, StageDeviceToHost,
	}
}

// Split is where the time of one forward pass went, in ns, saturating at about 4.3 s a part.
type Split struct {
	Embed, Attention, Router, Experts, Head, Sample uint32
}
