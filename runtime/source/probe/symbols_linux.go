//go:build amd64 || arm64

package probe

import (
	"bufio"
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// function is a function of llama.cpp that probes watch. A C++ name contains the types of the parameters, so that a
// function with others is not found.
type function struct {
	symbol   string
	purpose  string
	required bool
	prefix   bool // symbol is the begin of a name: the parameters differ by version, and are not read
}

// is reports whether a symbol is this function.
func (f function) is(name string) bool {
	return name == f.symbol || f.prefix && strings.HasPrefix(name, f.symbol) && !strings.Contains(name, ".")
}

// Functions that are named in several places.
const (
	getRows      = "ggml_compute_forward_get_rows" // gathers the weights of the picked experts
	sampler      = "_Z21common_sampler_sampleP14common_samplerP13llama_contextib"
	plainSampler = "llama_sampler_sample"
)

// What functions are watched for.
const (
	passes  = "forward passes, tokens, positions, sequences"
	texts   = "tokenization, time in queue"
	reuse   = "reused prompt tokens"
	order   = "order of rows in large batches"
	samples = "sampling, token by token"
	picks   = "router picks"
	drafts  = "drafts, their time"
	follows = "the draft model's share of a pass"
	encodes = "passes of encoders"
)

// functions are the watched functions.
var functions = []function{
	{"llama_decode", passes, true, false},
	{"llama_tokenize", texts, false, false},
	{"llama_memory_seq_rm", reuse, true, false},
	{"_ZN13llama_context14process_ubatchERK12llama_ubatch14llm_graph_typeP22llama_memory_context_iR11ggml_status", order, false, false},
	{sampler, samples, false, false},
	{getRows, picks, false, false},
	{plainSampler, samples, false, false},
	{"_Z24common_speculative_draft", drafts, false, true},
	{"_Z26common_speculative_process", follows, false, true},
	{"llama_encode", encodes, false, false},
}

// Symbol is a function found in a process.
type Symbol struct {
	Name    string
	Purpose string
	File    string // name of the file in the process's view; "" if the function was not found
	path    string // opens the file
}

// Target is a process that links llama.cpp.
type Target struct {
	PID     int
	Start   uint64 // of the process, in clock ticks: another process with the same number has another
	Program string
	Model   string // path of the GGUF file that it maps or has open, "" unknown
	Symbols []Symbol
	model   string // opens the file
}

// mapping is a file that is mapped into a process.
type mapping struct {
	name, path string
	executable bool
}

// Inspect finds the functions and the model of a process. Files are opened by way of /proc, so that they are those that
// the process uses: in its mount namespace, and also when the path has another file by now. It fails if the process does
// not link llama.cpp.
func Inspect(pid int) (*Target, error) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	start, err := startTime(dir)
	if err != nil {
		return nil, fmt.Errorf("inspect process %d: %w", pid, err)
	}
	t := &Target{PID: pid, Start: start}
	t.Program, _ = os.Readlink(filepath.Join(dir, "exe"))
	maps, err := mappings(dir)
	if err != nil {
		return nil, fmt.Errorf("inspect process %d: %w", pid, err)
	}
	for _, f := range functions {
		t.Symbols = append(t.Symbols, Symbol{Name: f.symbol, Purpose: f.purpose})
	}
	for _, m := range maps {
		switch {
		case m.executable:
			t.find(m)
		case isModel(m.name) && t.model == "":
			t.Model, t.model = m.name, m.path
		}
	}
	if t.model == "" {
		t.openModel(dir)
	}
	for i, f := range functions {
		if f.required && t.Symbols[i].path == "" {
			return nil, fmt.Errorf("inspect process %d: %s has no function %s: it does not link llama.cpp, or one of before 2025-07, or its symbols are stripped", pid, t.Program, f.symbol)
		}
	}
	if t.has(sampler) { // it may call the other one
		t.Symbols = slices.DeleteFunc(t.Symbols, func(s Symbol) bool { return s.Name == plainSampler })
	}
	return t, nil
}

func isModel(name string) bool {
	return strings.HasSuffix(name, ".gguf") || strings.Contains(name, "/blobs/sha256-")
}

// mappings returns the mapped files of a process, each once.
func mappings(dir string) (all []mapping, err error) {
	file, err := os.Open(filepath.Join(dir, "maps"))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		// 7f0c-7f0d r-xp 00000000 fe:00 1234   /usr/lib/libllama.so
		fields := strings.Fields(lines.Text())
		if len(fields) < 6 || !strings.HasPrefix(fields[5], "/") {
			continue
		}
		m := mapping{
			name: strings.Join(fields[5:], " "), path: filepath.Join(dir, "map_files", fields[0]), executable: strings.Contains(fields[1], "x"),
		}
		if !slices.ContainsFunc(all, func(o mapping) bool { return o.name == m.name && o.executable == m.executable }) {
			all = append(all, m)
		}
	}
	return all, lines.Err()
}

// openModel looks for the model among the open files.
func (t *Target) openModel(dir string) {
	entries, _ := os.ReadDir(filepath.Join(dir, "fd"))
	for _, e := range entries {
		path := filepath.Join(dir, "fd", e.Name())
		if name, err := os.Readlink(path); err == nil && isModel(name) {
			t.Model, t.model = name, path
			return
		}
	}
}

// find looks for the watched functions in a mapped file.
func (t *Target) find(m mapping) {
	file, err := elf.Open(m.path)
	if err != nil {
		return
	}
	defer file.Close()
	for _, read := range []func() ([]elf.Symbol, error){file.DynamicSymbols, file.Symbols} {
		symbols, err := read()
		if err != nil {
			continue
		}
		for _, s := range symbols {
			if s.Section == elf.SHN_UNDEF || elf.ST_TYPE(s.Info) != elf.STT_FUNC {
				continue
			}
			for i := range t.Symbols {
				if x := &t.Symbols[i]; x.path == "" && functions[i].is(s.Name) {
					x.Name, x.File, x.path = s.Name, m.name, m.path
				}
			}
		}
	}
}

// startTime returns when a process started, in clock ticks since the machine did.
func startTime(dir string) (uint64, error) {
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 20 {
		return 0, fmt.Errorf("read %s: too short", filepath.Join(dir, "stat"))
	}
	if fields[0] == "Z" || fields[0] == "X" {
		return 0, fmt.Errorf("read %s: the process has ended", filepath.Join(dir, "stat"))
	}
	return strconv.ParseUint(fields[19], 10, 64)
}

// has reports whether a function was found.
func (t *Target) has(name string) bool {
	return slices.ContainsFunc(t.Symbols, func(s Symbol) bool { return s.Name == name && s.path != "" })
}

// alive reports whether the process still runs.
func (t *Target) alive() bool {
	start, err := startTime(filepath.Join("/proc", strconv.Itoa(t.PID)))
	return err == nil && start == t.Start
}
