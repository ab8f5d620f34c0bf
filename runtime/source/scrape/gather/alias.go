// Package gather converts the Prometheus metrics of inference engines into reports (event.Aggregates). Metric names
// differ between engines and versions: a Table maps those of one engine to their roles.
package gather

import (
	"bytes"
	"slices"
	"strings"
)

// Role is the meaning of a metric.
type Role uint8

// The roles. Those from Generated on are counters.
const (
	noRole           Role = iota // histograms have no role
	Running                      // requests
	InFlight                     // requests, waiting ones included
	Waiting                      // requests
	Queue                        // requests in a further queue, under the alias's name: they wait, too
	KVUsage                      // 0..1
	KVUsed                       // cells
	KVTotal                      // cells
	KVBlocks                     // total
	KVBlocksUsed                 // blocks
	KVBlockSize                  // cells per block
	KVConfig                     // in its labels: see configuredCells
	DecodeRate                   // tokens/s
	CacheHitShare                // share of prompt tokens that came from a cache, 0..1
	DraftAcceptShare             // share of drafted tokens that were accepted, 0..1
	SleepState                   // above 0: asleep until woken up
	processStart                 // Unix time in s
	Adapters                     // Unix time in s of the current names of LoRA adapters, which are labels
	RankPicks                    // picks of experts, of which the label le has the rank
	OtherSum                     // under the alias's name
	OtherMean                    // under the alias's name: averaged over several engines
	OtherPercent                 // as OtherMean, but 0 to 100

	Generated      // tokens
	Prompt         // prompt tokens, cached ones included
	PromptComputed // prompt tokens, cached ones excluded
	PromptCached   // prompt tokens
	CacheQueries   // prompt tokens looked up in a prefix cache
	CacheHits      // of CacheQueries
	Finished       // requests
	Failed         // requests, without those that another metric counts as Cancelled
	Cancelled      // requests, by their client
	DeviceBusy     // device time in s
	DecodeTime     // decode time in s, summed over requests
	OtherCount     // under the alias's name
	Ratio          // under the alias's name: divided by another counter
	whole          // what ratios are divided by
	numRoles
)

func (r Role) isCounter() bool { return r >= Generated }

// isMean reports whether several engines behind one address are averaged instead of summed up.
func (r Role) isMean() bool {
	switch r {
	case KVUsage, CacheHitShare, DraftAcceptShare, KVBlockSize, processStart, OtherMean, OtherPercent:
		return true
	}
	return false
}

// Alias gives the meaning of a metric. If a server has several metrics with the same meaning, the first one counts.
// Counters match with and without the suffix _total, because older libraries omit it.
type Alias struct {
	Metric    string // its name after the stem of the engine's metrics
	Role      Role
	Name      string // of an other number or a ratio
	Of        string // name of the counter by which a ratio is divided, after the stem
	Histogram string // name of an event.Histogram; "": the metric is not a histogram
	AtEnd     bool   // tokens are counted when their request ends
	Batch     bool   // of the last batch, also while no request runs
	MayLack   bool   // 0 may mean that the server does not count it
	Label     string // use only samples in which this label has one of the values; "": all samples
	Values    string // separated by |: a value, the beginning of values with * behind it, or with ! before it one not meant
}

// ProcessStart is the metric with the start time of a process, of any program.
const ProcessStart = "process_start_time_seconds"

// Table holds the metrics of an engine. It does not change.
type Table struct {
	stems     []string               // with which the names of its metrics begin
	rankLabel string                 // label of data-parallel ranks; "": as its name says
	aliases   []Alias                // with full names
	wholes    []int                  // of each ratio: the alias that it is divided by
	named     map[string][]metricRef // by the names of samples
	roles     [numRoles][]int        // by role
}

// NewTable returns the table of an engine. Its metrics have the names of own after one of the stems. Those of others,
// such as its HTTP server, have full names. rankLabel is the label of data-parallel ranks; "": one that says so.
func NewTable(stems []string, rankLabel string, own []Alias, others ...Alias) *Table {
	t := &Table{stems: stems, rankLabel: rankLabel, named: make(map[string][]metricRef)}
	for _, a := range own {
		for _, stem := range stems {
			t.add(a, stem)
		}
	}
	for _, a := range append(others, Alias{Metric: ProcessStart, Role: processStart}) {
		t.add(a, "")
	}
	return t
}

// add adds a metric whose name begins with a stem.
func (t *Table) add(a Alias, stem string) {
	of := a.Of
	a.Metric, a.Of = stem+a.Metric, stem+a.Of
	i := len(t.aliases)
	t.aliases, t.wholes = append(t.aliases, a), append(t.wholes, -1)
	t.roles[a.Role] = append(t.roles[a.Role], i)
	refer := func(name string, p int) { t.named[name] = append(t.named[name], metricRef{i, p}) }
	switch {
	case a.Histogram != "":
		refer(a.Metric+"_bucket", bucketPart)
		refer(a.Metric+"_sum", sumPart)
		refer(a.Metric+"_count", countPart)
	case a.Role.isCounter() && !strings.HasSuffix(a.Metric, "_sum"):
		refer(a.Metric+"_total", valuePart)
		refer(a.Metric, valuePart)
	default:
		refer(a.Metric, valuePart)
	}
	if a.Role != Ratio {
		return
	}
	at := slices.IndexFunc(t.aliases, func(o Alias) bool { return o.Role == whole && o.Metric == a.Of })
	if at < 0 {
		at = len(t.aliases)
		t.add(Alias{Metric: of, Role: whole}, stem)
	}
	t.wholes[i] = at
}

// Has reports whether a sample with this name is of the engine: metrics that any program may have do not show it.
func (t *Table) Has(name string) bool {
	return slices.ContainsFunc(t.stems, func(stem string) bool { return strings.HasPrefix(name, stem) }) && t.named[name] != nil
}

// In reports whether a text has metrics of the engine: a line, or the name in a TYPE or HELP line, begins with a stem.
func (t *Table) In(text []byte) bool {
	return slices.ContainsFunc(t.stems, func(stem string) bool {
		return bytes.HasPrefix(text, []byte(stem)) || slices.ContainsFunc([]string{"\n", "# TYPE ", "# HELP "}, func(before string) bool {
			return bytes.Contains(text, []byte(before+stem))
		})
	})
}

// Pattern returns a regular expression for the names of the engine's metrics. Stems have no special characters.
func (t *Table) Pattern() string { return "(" + strings.Join(t.stems, "|") + ").*" }
