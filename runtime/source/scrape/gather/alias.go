// Package gather converts the Prometheus metrics of inference engines into reports (event.Aggregates). Metric names
// differ between engines and versions: a Table maps those of one engine to their roles.
package gather

import (
	"bytes"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
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

// Table holds the metrics of an engine, under the names that a text has for them. They do not change.
type Table struct {
	Spelling string // how the names begin if not as the engine writes them, such as ray_vllm_*; "": as it does

	stems       []string // with which the names of its metrics begin
	bare        []string // metrics that show the engine without a stem, too
	isBare      bool     // no name has a stem
	rankLabel   string   // label of data-parallel ranks; "": as its name says
	own, others []Alias
	aliases     []Alias                // with full names
	wholes      []int                  // of each ratio: the alias that it is divided by
	named       map[string][]metricRef // by the names of samples
	roles       [numRoles][]int        // by role

	mu      sync.Mutex        // guards spelled
	spelled map[string]*Table // the table with other names, by how they begin; nil: its names are other ones themselves
}

// Limits of names from outside.
const (
	maxSpellings = 64 // per engine
	maxPrefix    = 64 // bytes before a stem
)

// NewTable returns the table of an engine. Its metrics have the names of own after one of the stems. Those of others,
// such as its HTTP server, have full names. rankLabel is the label of data-parallel ranks; "": one that says so.
func NewTable(stems []string, rankLabel string, own []Alias, others ...Alias) *Table {
	t := &Table{stems: stems, rankLabel: rankLabel, own: own, others: others, spelled: make(map[string]*Table)}
	t.fill("")
	return t
}

// Bare returns the table with names that show the engine without a stem, too.
func (t *Table) Bare(names ...string) *Table {
	t.bare = names
	return t
}

// fill adds the metrics. What puts a prefix before the stems puts it before all names, or only before the engine's.
func (t *Table) fill(prefix string) {
	t.named = make(map[string][]metricRef)
	for _, a := range t.own {
		for _, stem := range t.stems {
			t.add(a, stem)
		}
	}
	for _, a := range append(slices.Clip(t.others), Alias{Metric: ProcessStart, Role: processStart}) {
		if prefix != "" {
			t.add(a, prefix)
		}
		t.add(a, "")
	}
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

// has reports whether the table has a metric, or a sample with this name.
func (t *Table) has(name string) bool { return t.named[name] != nil || t.named[name+"_bucket"] != nil }

// As returns the table with the names of a text, of which one is given: of a sample, or of its metric. nil: it is not of the
// engine, or any program may have it. What collects metrics puts a prefix before their names, such as ray_ or kserve_, and
// writes _ for a colon; some servers leave the stem out. Names with a colon before the stem are of recording rules.
func (t *Table) As(name string) *Table {
	if t.has(name) && slices.ContainsFunc(t.stems, func(stem string) bool { return strings.HasPrefix(name, stem) }) {
		return t
	}
	for _, stem := range t.stems {
		word := strings.TrimRight(stem, ":_")
		for from := 0; from < len(name); {
			at := strings.Index(name[from:], word)
			if at < 0 {
				break
			}
			at += from
			end := at + len(word)
			from = at + 1
			if end == len(name) || !isMark(name[end]) || at > maxPrefix || at > 0 && name[at-1] != '_' && name[at-1] != '.' ||
				strings.Contains(name[:at], ":") || !t.has(stem+name[end+1:]) {
				continue
			}
			return t.spell(name[:at], name[end:end+1])
		}
	}
	metric := histogramPart.ReplaceAllString(name, "")
	if slices.Contains(t.bare, metric) {
		return t.spell("", "")
	}
	return nil
}

// histogramPart is how the names of the samples of a histogram end.
var histogramPart = regexp.MustCompile(`_(bucket|sum|count)$`)

// isMark reports whether a byte separates the words of a name.
func isMark(b byte) bool { return b == ':' || b == '_' || b == '.' }

// spell returns the table with a prefix before its stems, and another mark after them; "": without stems. nil: there are too
// many.
func (t *Table) spell(prefix, mark string) *Table {
	key := prefix + " " + mark
	t.mu.Lock()
	defer t.mu.Unlock()
	if v := t.spelled[key]; v != nil || t.spelled == nil || len(t.spelled) >= maxSpellings {
		return v
	}
	v := &Table{rankLabel: t.rankLabel, own: t.own, others: t.others, isBare: mark == "", stems: []string{""}, Spelling: "without a prefix"}
	if !v.isBare {
		v.stems = nil
		for _, stem := range t.stems {
			if stem = prefix + strings.TrimRight(stem, ":_") + mark; !slices.Contains(v.stems, stem) {
				v.stems = append(v.stems, stem)
			}
		}
		v.Spelling = strings.Join(v.stems, "*, ") + "*"
	}
	v.fill(prefix)
	t.spelled[key] = v
	return v
}

// In returns the table with the names that a text has for the engine's metrics, in its samples or in its TYPE and HELP
// lines; nil: it has none of them.
func (t *Table) In(text []byte) *Table {
	for name := range names(text) {
		if as := t.As(name); as != nil {
			return as
		}
	}
	return nil
}

// names yields the names of the metrics and samples in a text, each of several lines in a row once.
func names(text []byte) iter.Seq[string] {
	return func(yield func(string) bool) {
		last := ""
		for line := range bytes.Lines(text) {
			line = bytes.TrimLeft(line, " \t")
			if rest, ok := bytes.CutPrefix(line, []byte("# ")); ok {
				kind, name, _ := bytes.Cut(rest, []byte(" "))
				if line = name; string(kind) != "TYPE" && string(kind) != "HELP" {
					continue
				}
			}
			if end := bytes.IndexAny(line, "{ \t\r\n"); end >= 0 {
				line = line[:end]
			}
			if len(line) == 0 || string(line) == last || !isName(line) {
				continue
			}
			if last = string(line); !yield(last) {
				return
			}
		}
	}
}

// isName reports whether a word can be the name of a metric.
func isName(word []byte) bool {
	for i, b := range word {
		if !isMark(b) && (b|0x20 < 'a' || b|0x20 > 'z') && (b < '0' || b > '9' || i == 0) {
			return false
		}
	}
	return len(word) <= 4*maxPrefix
}

// maxFamilies limits the families that Families names.
const maxFamilies = 4

// common are the families that any program has: of its language's runtime, its process, its HTTP server, its exporter.
var common = []string{"python", "process", "go", "promhttp", "http", "scrape", "target", "up", "otel", "rust", "jvm", "nodejs", "uvicorn", "fastapi"}

// Families returns what a text has metrics of, by the words with which their names begin, such as "acme_*, other_llm_*"; "": of
// nothing but what any program has.
func Families(text []byte) string {
	var words, out []string // the first word of each family, and what its names share
	for name := range names(text) {
		end := strings.IndexAny(name, ":_.")
		if end <= 0 || slices.Contains(common, name[:end]) {
			continue
		}
		at := slices.Index(words, name[:end])
		if at < 0 {
			words, out = append(words, name[:end]), append(out, name[:strings.LastIndexAny(name, ":_.")+1])
			continue
		}
		for !strings.HasPrefix(name, out[at]) {
			out[at] = out[at][:strings.LastIndexAny(out[at][:len(out[at])-1], ":_.")+1]
		}
	}
	more := ""
	if len(out) > maxFamilies {
		out, more = out[:maxFamilies], ", …"
	}
	if len(out) == 0 {
		return ""
	}
	return strings.Join(out, "*, ") + "*" + more
}

// Named returns the name of an endpoint, with how its metrics are named if not as the engine does.
func (t *Table) Named(endpoint string) string {
	if t.Spelling == "" {
		return endpoint
	}
	return endpoint + " (" + t.Spelling + ")"
}

// Names returns the names of the samples of the engine's metrics if they have no stem by which a pattern finds them.
func (t *Table) Names() []string {
	if !t.isBare {
		return nil
	}
	return slices.Sorted(maps.Keys(t.named))
}

// IsBare reports whether the names have no stem: metrics of another engine beside them say more.
func (t *Table) IsBare() bool { return t.isBare }

// Pattern returns a regular expression for the names of the engine's metrics. Names have no special characters.
func (t *Table) Pattern() string {
	words := make([]string, len(t.stems))
	for i, stem := range t.stems {
		words[i] = strings.TrimRight(stem, ":_")
	}
	pattern := "(.*[_.])?(" + strings.Join(words, "|") + ")[:_.].+"
	if len(t.bare) > 0 {
		pattern += "|(" + strings.Join(t.bare, "|") + ")(_bucket)?"
	}
	return pattern
}
