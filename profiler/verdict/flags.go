package verdict

import (
	"maps"
	"slices"
	"strings"
)

// Phrases of remedies whose settings only some engines have.
const (
	smallerChunks = "smaller prompt chunks"
	moreKV        = "more memory for the KV cache"
	shorterDrafts = "shorter drafts"
)

// settings replaces the words for settings in remedies by those of each engine, by its name.
var settings = map[string]*strings.Replacer{}

// NameSettings sets the names that an engine has for settings, by their words in remedies: a name replaces a flag of
// llmtop, such as --parallel, and follows a phrase, such as "shorter drafts". Call it while nothing is judged yet.
func NameSettings(engine string, names map[string]string) {
	if len(names) == 0 {
		return
	}
	var pairs []string
	for _, words := range slices.Sorted(maps.Keys(names)) {
		name := names[words]
		if !strings.HasPrefix(words, "--") {
			name = words + " (" + name + ")"
		}
		pairs = append(pairs, words, name)
	}
	settings[engine] = strings.NewReplacer(pairs...)
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
