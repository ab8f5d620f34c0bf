package playback

import (
	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/profiler/compat"
	"github.com/llmtop/llmtop/profiler/report"
)

// Compat is the name of a benchmark tool whose metrics are added to a report; "": none.
type Compat string

// Bind adds the flag.
func (c *Compat) Bind(set *pflag.FlagSet) {
	set.StringVar((*string)(c), "compat", "", "add metrics as `TOOL` defines them: "+compat.Names())
}

// Check refuses the name of an unknown tool.
func (c Compat) Check() error {
	if _, ok := compat.ByName(string(c)); !ok && c != "" {
		return exit.Usagef("--compat %q: must be one of %s", c, compat.Names())
	}
	return nil
}

// AddTo adds the metrics of the tool to a report.
func (c Compat) AddTo(r *report.Report) {
	if tool, ok := compat.ByName(string(c)); ok {
		r.AddCompat(tool)
	}
}
