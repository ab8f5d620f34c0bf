//go:build amd64 || arm64

package probe

import (
	"bufio"
	"cmp"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/llmtop/llmtop/runtime/host"
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
	synchronize  = "llama_synchronize"
)

// What functions are watched for.
const (
	passes  = "forward passes, tokens, positions, sequences"
	texts   = "tokenization, time in queue"
	reuse   = "reused prompt tokens"
	resets  = "an emptied KV cache"
	order   = "order of rows in large batches"
	samples = "sampling, token by token"
	picks   = "router picks"
	drafts  = "drafts, their time"
	follows = "the draft model's share of a pass"
	encodes = "passes of encoders"
	syncs   = "the end of passes on a GPU"
)

// functions are the watched functions.
var functions = []function{
	{"llama_decode", passes, true, false},
	{"llama_tokenize", texts, false, false},
	{"llama_memory_seq_rm", reuse, true, false},
	{"llama_memory_clear", resets, false, false},
	{"_ZN13llama_context14process_ubatchERK12llama_ubatch14llm_graph_typeP22llama_memory_context_iR11ggml_status", order, false, false},
	{sampler, samples, false, false},
	{getRows, picks, false, false},
	{plainSampler, samples, false, false},
	{"_Z24common_speculative_draft", drafts, false, true},
	{"_Z26common_speculative_process", follows, false, true},
	{"llama_encode", encodes, false, false},
	{synchronize, syncs, false, false},
}

// mapping is a file that is mapped into a process.
type mapping struct {
	name, path string
	executable bool
}

// InspectCUDA is Inspect, also for a process that computes with CUDA without llama.cpp.
func InspectCUDA(pid int) (*Target, error) {
	t, err := inspect(pid)
	if errors.Is(err, ErrAbsent) && t != nil && len(t.CUDA) > 0 {
		t.Symbols, t.gpu, err = nil, openGPUs("/", pid), nil
	}
	if err != nil {
		return nil, fmt.Errorf("inspect process %d: %w", pid, err)
	}
	return t, nil
}

// Inspect finds the functions and the model of a process. Files are opened by way of /proc, so that they are those that
// the process uses: in its mount namespace, and also when the path has another file by now. It fails with ErrAbsent if
// the process does not link llama.cpp, and with os.ErrPermission if that cannot be read.
func Inspect(pid int) (*Target, error) {
	t, err := inspect(pid)
	if err != nil {
		return nil, fmt.Errorf("inspect process %d: %w", pid, err)
	}
	return t, nil
}

func inspect(pid int) (*Target, error) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	t := &Target{ID: host.Identify(pid)}
	if t.PID == 0 {
		return nil, syscall.ESRCH
	}
	t.Program, _ = os.Readlink(filepath.Join(dir, "exe"))
	maps, err := mappings(dir)
	if err != nil {
		return nil, err
	}
	for _, f := range functions {
		t.Symbols = append(t.Symbols, Symbol{Name: f.symbol, Purpose: f.purpose})
	}
	var unread error
	var models []mapping
	for _, m := range maps {
		t.device = t.device || isDriver(m.name)
		switch {
		case m.executable:
			unread = cmp.Or(unread, t.find(m))
		case isModel(m.name):
			models = append(models, m)
		}
	}
	if len(models) == 0 {
		models = openModels(dir)
	}
	t.Model, t.model = mainModel(models)
	t.findCUDA(maps)
	if err := t.complete(); err != nil {
		return t, cmp.Or(unread, err)
	}
	if t.has(sampler) { // it may call the other one
		t.drop(plainSampler)
	}
	if t.device {
		t.gpu, t.experts, t.starts = openGPUs("/", pid), hostExperts(dir), startsGPU("/", pid)
	} else { // llama_decode returns at the end of a pass
		t.drop(synchronize)
	}
	return t, nil
}

// hostExperts reports whether llama.cpp's options, or their variables, put experts on the CPU.
func hostExperts(dir string) bool {
	line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
	environ, _ := os.ReadFile(filepath.Join(dir, "environ"))
	words := strings.Split(string(line), "\x00")
	for _, v := range strings.Split(string(environ), "\x00") {
		name, value, _ := strings.Cut(v, "=")
		switch name {
		case "LLAMA_ARG_CPU_MOE":
			words = append(words, "--cpu-moe")
		case "LLAMA_ARG_N_CPU_MOE":
			words = append(words, "--n-cpu-moe", value)
		case "LLAMA_ARG_OVERRIDE_TENSOR":
			words = append(words, "--override-tensor", value)
		}
	}
	for i, w := range words {
		next := ""
		if i+1 < len(words) {
			next = words[i+1]
		}
		switch w {
		case "--cpu-moe", "-cmoe":
			return true
		case "--n-cpu-moe", "-ncmoe":
			n, _ := strconv.Atoi(next)
			return n > 0
		case "--override-tensor", "-ot":
			if strings.Contains(next, "exps") && strings.Contains(next, "=CPU") {
				return true
			}
		}
	}
	return false
}

// drop leaves a function out.
func (t *Target) drop(name string) {
	t.Symbols = slices.DeleteFunc(t.Symbols, func(s Symbol) bool { return s.Name == name })
}

// drivers are the begins of the names of libraries by which llama.cpp's backends use a GPU.
var drivers = []string{"libcuda.so", "libamdhip64.so", "libvulkan.so", "libOpenCL.so", "libze_loader.so", "libmusa.so", "libascendcl.so"}

func isDriver(name string) bool {
	return slices.ContainsFunc(drivers, func(d string) bool { return strings.HasPrefix(filepath.Base(name), d) })
}

// complete checks that the required functions were found, and refuses those whose arguments have an unknown layout.
func (t *Target) complete() error {
	for i, f := range functions {
		switch {
		case !f.required || t.Symbols[i].path != "":
		case t.has(functions[0].symbol):
			return fmt.Errorf("%s has no function %s: it links llama.cpp of before 2025-07", t.Program, f.symbol)
		case t.facts.noSymbols:
			return fmt.Errorf("%w, or its symbols are stripped: %s has no function %s", ErrAbsent, t.Program, f.symbol)
		default:
			return fmt.Errorf("%w: %s has no function %s", ErrAbsent, t.Program, f.symbol)
		}
	}
	if why := t.facts.tensor.refused(); why != "" {
		i := slices.IndexFunc(t.Symbols, func(s Symbol) bool { return s.Name == getRows })
		t.Symbols[i].Refused, t.Symbols[i].path = why, ""
	}
	return nil
}

func isModel(name string) bool {
	return strings.HasSuffix(name, ".gguf") || strings.Contains(name, "/blobs/sha256-")
}

// mainModel returns the name of the largest of the model files, and a path that opens it: a draft model and a projector
// are smaller. Of a model in several files it is the first, which describes it.
func mainModel(all []mapping) (name, path string) {
	largest := int64(-1)
	for _, m := range all {
		if info, err := os.Stat(m.path); err == nil && info.Size() > largest {
			largest, name, path = info.Size(), m.name, m.path
		}
	}
	const part = "-00000-of-00000.gguf"
	if whole := name[:max(len(name)-len(part), 0)]; strings.Contains(name[len(whole):], "-of-") {
		first := slices.IndexFunc(all, func(m mapping) bool { return strings.HasPrefix(m.name, whole+"-00001-of-") })
		if first >= 0 {
			return all[first].name, all[first].path
		}
	}
	return name, path
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
		name, replaced := strings.CutSuffix(strings.Join(fields[5:], " "), deleted)
		executable := strings.Contains(fields[1], "x")
		if slices.ContainsFunc(all, func(o mapping) bool { return o.name == name && o.executable == executable }) {
			continue
		}
		m := mapping{name: name, path: filepath.Join(dir, "map_files", fields[0]), executable: executable}
		if _, err := os.Stat(m.path); errors.Is(err, os.ErrPermission) && !replaced { // only root may follow it
			if at := filepath.Join(dir, "root", name); hasInode(at, fields[4]) {
				m.path = at
			}
		}
		all = append(all, m)
	}
	return all, lines.Err()
}

// deleted is what the kernel adds to the name of a file whose path was removed, or has another file by now.
const deleted = " (deleted)"

// hasInode reports whether the file at a path has an inode number.
func hasInode(path, inode string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && strconv.FormatUint(stat.Ino, 10) == inode
}

// openModels looks for models among the open files.
func openModels(dir string) (all []mapping) {
	entries, _ := os.ReadDir(filepath.Join(dir, "fd"))
	for _, e := range entries {
		path := filepath.Join(dir, "fd", e.Name())
		name, err := os.Readlink(path)
		if name = strings.TrimSuffix(name, deleted); err == nil && isModel(name) {
			all = append(all, mapping{name: name, path: path})
		}
	}
	return all
}

// find looks for the watched functions in a mapped file. It fails if reading the file is not permitted.
func (t *Target) find(m mapping) error {
	file, err := elf.Open(m.path)
	switch {
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("read %s: %w", m.name, os.ErrPermission)
	case err != nil:
		return nil // not a program
	}
	defer file.Close()
	decoded := t.has(functions[0].symbol)
	for _, read := range []func() ([]elf.Symbol, error){file.DynamicSymbols, file.Symbols} {
		symbols, err := read()
		if err != nil {
			t.facts.noSymbols = t.facts.noSymbols || errors.Is(err, elf.ErrNoSymbols) && m.name == t.Program
			continue
		}
		for _, s := range symbols {
			if s.Section == elf.SHN_UNDEF {
				continue
			}
			t.facts.read(file, &s)
			for i := range t.Symbols {
				if x := &t.Symbols[i]; x.path == "" && elf.ST_TYPE(s.Info) == elf.STT_FUNC && functions[i].is(s.Name) {
					x.Name, x.File, x.path = s.Name, m.name, m.path
				}
			}
		}
	}
	if !decoded && t.has(functions[0].symbol) {
		t.BuildID = buildID(file)
	}
	if t.facts.build > 0 {
		t.Version = "b" + strconv.Itoa(t.facts.build)
	}
	return nil
}

// buildID returns the build id of a file, "" without one.
func buildID(file *elf.File) string {
	note := file.Section(".note.gnu.build-id")
	if note == nil {
		return ""
	}
	data, err := note.Data()
	const head = 16 // three lengths and the name
	if err != nil || len(data) <= head {
		return ""
	}
	return hex.EncodeToString(data[head:])
}

// has reports whether a function was found.
func (t *Target) has(name string) bool {
	return slices.ContainsFunc(t.Symbols, func(s Symbol) bool { return s.Name == name && s.path != "" })
}
