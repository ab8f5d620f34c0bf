package local

import (
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"mvdan.cc/sh/v3/syntax"

	"github.com/llmtop/llmtop/cmd/files"
	"github.com/llmtop/llmtop/cmd/screen"
	"github.com/llmtop/llmtop/cmd/session"
	"github.com/llmtop/llmtop/profiler/clean"
)

// CommandLine returns the arguments of llmtop that repeat a command, named as it reports without a screen, without what
// only concerns the screen and the outputs. The text of each of its prompts is left out as in reports: PROMPT stands for
// it.
func CommandLine(name string, flags *pflag.FlagSet, prompts int) string {
	words := []string{name}
	for _, arg := range flags.Args() {
		if strings.Contains(arg, "://") {
			arg = clean.URL(arg)
		}
		words = append(words, Quote(arg))
	}
	others := pflag.NewFlagSet("others", pflag.ContinueOnError)
	new(screen.View).Bind(others)
	new(session.Outputs).Bind(others)
	new(session.ListenFlags).Bind(others)
	flags.Visit(func(f *pflag.Flag) {
		switch {
		case others.Lookup(f.Name) != nil || files.IsOutput(f) || f.Name == "headless" || f.Name == "ui":
		case f.Name == "prompt":
			words = append(words, slices.Repeat([]string{"-p PROMPT"}, prompts)...)
		default:
			words = append(words, FlagWords(f)...)
		}
	})
	return strings.Join(words, " ")
}

// FlagWords returns the words of a shell that set a flag to its value.
func FlagWords(f *pflag.Flag) []string {
	name, value := "--"+f.Name, f.Value.String()
	list, _ := f.Value.(interface{ GetSlice() []string })
	switch kind := f.Value.Type(); {
	case kind == "bool":
		return []string{name + "=" + value}
	case list != nil && strings.HasSuffix(kind, "Slice"): // those that commas separate
		value = strings.Join(list.GetSlice(), ",")
	case list != nil:
		var words []string
		for _, one := range list.GetSlice() {
			words = append(words, name, Quote(one))
		}
		return words
	case kind == "stringToString":
		value = strings.Trim(value, "[]")
	}
	return []string{name, Quote(value)}
}

// Quote quotes a word for a shell if it needs to be.
func Quote(word string) string {
	quoted, err := syntax.Quote(word, syntax.LangPOSIX)
	if err != nil { // it has a character that no argument can have
		return strconv.Quote(word)
	}
	return quoted
}
