package files

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/cmd/console"
	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/profiler/report"
)

// Endings of the names of files that commands write besides the formats of a report.
const (
	JSON      = ".json"
	Markdown  = ".md"
	Stages    = ".stages.csv"
	Timeline  = ".perfetto.json"
	Recording = ".llmtop"
	Cast      = ".cast"
	SVG       = ".svg"
)

// kind is a kind of file that commands write. The end of its name says it.
type kind struct {
	ending, what string
	alias        string // hidden flag for a file of this kind, whatever its name ends with
	text         bool   // may contain prompts and completions
	stdout       bool
	report       func(*report.Report, io.Writer) error // nil: no format of a report
}

// kinds are all kinds, with the one that - alone stands for before the others.
var kinds = []kind{
	{JSON, "", "json", true, true, (*report.Report).WriteJSON},
	{".jsonl", "", "jsonl", true, true, (*report.Report).WriteJSONL},
	{".csv", "", "csv", false, true, (*report.Report).WriteCSV},
	{".tokens.csv", "", "csv-tokens", false, true, (*report.Report).WriteTokensCSV},
	{Stages, "", "csv-stages", false, true, (*report.Report).WriteStagesCSV},
	{Markdown, "", "markdown", false, true, (*report.Report).WriteMarkdown},
	{".html", "", "html", false, true, (*report.Report).WriteHTML},
	{Timeline, "", "perfetto", false, true, nil},
	{Recording, "recording", "record", true, false, nil},
	{Cast, "asciicast", "cast", true, false, nil},
	{SVG, "", "svg", true, false, nil},
}

// Out is the value of --out: the files that a command writes, at most one of each kind.
type Out struct {
	Text     bool              // include prompts and completions
	Headless bool              // no screen: print the report
	Warnings func() []string   // what could not be measured well; nil: unknown
	kinds    []*kind           // that the command writes
	names    map[string]string // by ending; "-" is standard output
}

// BindOut adds --out to a command that writes files with these endings, or the endings to its --out.
func BindOut(set *pflag.FlagSet, endings ...string) *Out {
	if set.Lookup("out") == nil {
		set.Var(&Out{names: map[string]string{}}, "out", "")
	}
	f := set.Lookup("out")
	o := f.Value.(*Out)
	before := o.kinds
	o.kinds = nil
	for i := range kinds {
		k := &kinds[i]
		bound := slices.Contains(before, k)
		if !bound && slices.Contains(endings, k.ending) {
			set.Var(alias{o, k}, k.alias, "`FILE` of --out")
			_ = set.MarkHidden(k.alias) // it exists
			bound = true
		}
		if bound {
			o.kinds = append(o.kinds, k)
		}
	}
	f.Usage = "write `FILE` by its ending (repeatable): " + o.endings(true)
	if slices.ContainsFunc(o.kinds, func(k *kind) bool { return k.stdout }) {
		f.Usage += "; - or -.ENDING: stdout"
	}
	return o
}

// BindReports is BindOut for the formats of a report.
func BindReports(set *pflag.FlagSet) *Out {
	var endings []string
	for _, k := range kinds {
		if k.report != nil {
			endings = append(endings, k.ending)
		}
	}
	o := BindOut(set, endings...)
	o.BindText(set)
	return o
}

// BindText adds --text.
func (o *Out) BindText(set *pflag.FlagSet) {
	if set.Lookup("text") == nil {
		set.BoolVar(&o.Text, "text", false, "include prompts and completions in the files of --out; only you can read them")
	}
}

// BindHeadless adds --headless.
func (o *Out) BindHeadless(set *pflag.FlagSet, usage string) {
	set.BoolVar(&o.Headless, "headless", false, usage)
}

// endings lists the endings of the command's files.
func (o *Out) endings(explained bool) string {
	var out []string
	for _, k := range o.kinds {
		if explained && k.what != "" {
			out = append(out, k.ending+" ("+k.what+")")
		} else {
			out = append(out, k.ending)
		}
	}
	return strings.Join(out, ", ")
}

// Set implements pflag.Value.
func (o *Out) Set(name string) error {
	var of *kind
	for i := range kinds { // all, so that .json does not stand for an ending that another command has
		k := &kinds[i]
		ends := strings.HasSuffix(strings.ToLower(filepath.Base(name)), k.ending)
		if name == "-" && slices.Contains(o.kinds, k) && k.stdout && of == nil || ends && (of == nil || len(k.ending) > len(of.ending)) {
			of = k
		}
	}
	if of == nil || !slices.Contains(o.kinds, of) {
		return fmt.Errorf("must end with one of %s", o.endings(false))
	}
	if strings.EqualFold(name, "-"+of.ending) && of.stdout {
		name = "-"
	}
	return o.set(of, name)
}

// set names the file of a kind.
func (o *Out) set(of *kind, name string) error {
	if before := o.names[of.ending]; before != "" && before != name {
		return fmt.Errorf("%s is written already: name one %s", before, of.ending)
	}
	o.names[of.ending] = name
	return nil
}

// String implements pflag.Value.
func (o *Out) String() string {
	var names []string
	for _, k := range o.kinds {
		if name := o.names[k.ending]; name != "" {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

// Type implements pflag.Value.
func (o *Out) Type() string { return "file" }

// alias is the value of a hidden flag that names the file of one kind.
type alias struct {
	out  *Out
	kind *kind
}

// Set implements pflag.Value.
func (a alias) Set(name string) error { return a.out.set(a.kind, name) }

// String implements pflag.Value.
func (a alias) String() string {
	if a.out == nil {
		return ""
	}
	return a.out.names[a.kind.ending]
}

// Type implements pflag.Value.
func (a alias) Type() string { return "file" }

// IsOutput reports whether a flag only says which files are written.
func IsOutput(f *pflag.Flag) bool {
	_, out := f.Value.(*Out)
	return out || IsAlias(f) || f.Name == "text"
}

// IsAlias reports whether a flag stands for --out with one kind of file.
func IsAlias(f *pflag.Flag) bool {
	_, is := f.Value.(alias)
	return is
}

// Name returns the file with an ending, "" for none, "-" for standard output. A command without --out has a nil Out.
func (o *Out) Name(ending string) string {
	if o == nil {
		return ""
	}
	return o.names[ending]
}

// some reports whether f is true for one of the named files.
func (o *Out) some(f func(k *kind, name string) bool) bool {
	return o != nil && slices.ContainsFunc(o.kinds, func(k *kind) bool { return o.names[k.ending] != "" && f(k, o.names[k.ending]) })
}

// Reports reports whether a report is to be written.
func (o *Out) Reports() bool { return o.some(func(k *kind, _ string) bool { return k.report != nil }) }

// Silent reports whether there may be no screen: with --headless, and where standard output is one of the files.
func (o *Out) Silent() bool { return o.Headless || o.TakesStdout() }

// TakesStdout reports whether standard output is one of the files. Nothing else may then be printed there.
func (o *Out) TakesStdout() bool {
	return o.some(func(_ *kind, name string) bool { return name == "-" })
}

// CheckOutputs refuses files of a command that overwrite each other or a file that it reads: an argument or the value of
// another flag. It refuses --text without a file that may have text.
func CheckOutputs(set *pflag.FlagSet, args []string) error {
	f := set.Lookup("out")
	if f == nil {
		return nil
	}
	o, ok := f.Value.(*Out)
	if !ok {
		return nil
	}
	args = slices.Concat(args, strings.Split(strings.Join(args, ","), ",")) // compare takes several files
	set.Visit(func(f *pflag.Flag) {
		if list, ok := f.Value.(pflag.SliceValue); ok {
			args = append(args, list.GetSlice()...)
		} else if !IsOutput(f) {
			args = append(args, f.Value.String())
		}
	})
	var written []*kind
	for _, k := range o.kinds {
		name := o.names[k.ending]
		if name == "" {
			continue
		}
		if i := slices.IndexFunc(written, func(other *kind) bool { return sameFile(name, o.names[other.ending]) }); i >= 0 {
			return exit.Usagef("--out: %s and %s both write to %s: name another file", written[i].ending, k.ending, name)
		}
		written = append(written, k)
		if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
			continue
		} else if i := slices.IndexFunc(args, func(arg string) bool { return sameFile(name, arg) }); i >= 0 {
			return exit.Usagef("--out %s: it would overwrite the input %s: name another file", name, args[i])
		}
	}
	if o.Text && !o.some(func(k *kind, _ string) bool { return k.text }) {
		return exit.Usagef("--text needs a file that may contain text: add --out FILE%s", o.texts())
	}
	return nil
}

// sameFile reports whether two names are of the same file, which need not exist.
func sameFile(a, b string) bool {
	of, err := os.Stat(a)
	other, otherErr := os.Stat(b)
	if err == nil && otherErr == nil {
		return os.SameFile(of, other) && (of.Mode().IsRegular() || a == b) // both may be /dev/null
	}
	return follow(a) == follow(b)
}

// follow returns the absolute name of the file that a name leads to, by a link to a file that is not there yet, too.
func follow(name string) string {
	if to, err := os.Readlink(name); err == nil && filepath.IsAbs(to) {
		name = to
	} else if err == nil {
		name = filepath.Join(filepath.Dir(name), to)
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(name)); err == nil {
		name = filepath.Join(dir, filepath.Base(name))
	}
	if path, err := filepath.Abs(name); err == nil {
		return path
	}
	return name
}

// texts lists the endings of files that may contain text.
func (o *Out) texts() string {
	var out []string
	for _, k := range o.kinds {
		if k.text {
			out = append(out, k.ending)
		}
	}
	return strings.Join(out, " or ")
}

// OpenOutput opens a file for WriteOutput, readable only by its owner if private; "-" is standard output, "" returns nil.
// What the file has stays until then, so that a run that fails does not lose the report of an earlier one.
func OpenOutput(name string, private bool) (*os.File, error) {
	switch name {
	case "":
		return nil, nil
	case "-":
		return console.Raw, nil
	}
	file, err := open(name, private, 0)
	if err != nil {
		return nil, exit.Usagef("write report: %w", err)
	}
	return file, nil
}

// WriteOutput writes to a file of OpenOutput and closes it.
func WriteOutput(file *os.File, to func(io.Writer) error) error {
	if file == nil {
		return nil
	}
	var err error
	if file == console.Raw {
		err = to(console.Out)
	} else {
		if info, failed := file.Stat(); failed == nil && info.Mode().IsRegular() {
			err = file.Truncate(0)
		}
		err = errors.Join(err, to(file), file.Close())
	}
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// Discard closes files of OpenOutput and removes those that are still empty.
func Discard(outputs []*os.File) {
	for _, file := range outputs {
		if file == nil || file == console.Raw {
			continue
		}
		info, err := file.Stat()
		_ = file.Close()
		if err == nil && info.Mode().IsRegular() && info.Size() == 0 { // not a device or a pipe
			_ = os.Remove(file.Name()) // an empty file does no harm
		}
	}
}
