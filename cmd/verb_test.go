package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/cmd/exit"
)

// TestVerbs checks which command llmtop runs without one.
func TestVerbs(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"weights": "GGUF\x03\x00\x00\x00", "9090": "GGUF", "run": "GGUF", "notes": "no model", "short": "GG", "bench.gguf": "",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := llmtop(t, "run", "--headless", "-n", "2", "-p", "hello", "--record", "session"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir("folder.d", 0o700); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"8080": "attach", ":8080": "attach", "gpu1:8000 gpu2:8000": "attach", "http://gpu1:8000": "attach", "pid:12": "attach",
		"unix:/run/x.sock": "attach", "tcp:gpu1:7070": "attach", "prometheus+http://p:9090": "attach",
		"--theme light 8080": "attach", "--theme=light 8080": "attach", "--headless --for 3s 8080": "attach", "--plain 8080": "attach",
		"weights": "run", filepath.Join(".", "weights") + " -p hello": "run", "missing.gguf": "run", "dir/MODEL.GGUF": "run", "9090": "run",
		"-p 8080 weights": "run", "-n 8 weights": "run", "-n8 weights": "run", "bench.gguf": "run",
		"session --speed 10": "replay", "missing.llmtop": "replay", "trace.jsonl.gz": "replay", "report.json": "report",
		"record x.llmtop 8080": "attach", "record x.llmtop": "attach", "record --for 3s x.llmtop http://gpu1:8000": "attach",
		"record x.llmtop weights": "run", "record x.llmtop --seed=7 -n 8": "run", "record x.llmtop --for=3s --plain": "attach", "record X.LLMTOP -p hello": "run", "--theme light record x.llmtop 8080": "attach",
		"cast x.cast": "cast", "cast --for 3s x.svg 8080": "cast", "record x.cast": "", "record": "", "record x.llmtop --help": "", "cast x.llmtop": "",
		"": "", "--theme light": "", "run 8080": "", "attach 8080": "", "help run": "", "completion bash": "", "run": "", "rum": "", "notes": "",
		"short": "", "folder.d": "", "-- 8080": "", "-p 8080": "", "__complete 8080": "", "70000": "", "-": "", "-x 8080": "attach",
	} {
		root := NewRoot()
		args := strings.Fields(line)
		got := withVerb(root, spellOut(root, args))
		if len(got) > len(args) != (want != "") || want != "" && got[0] != want {
			t.Errorf("llmtop %s: runs %v, want %q", line, got, want)
		}
	}
}

// TestDidYouMean checks the errors for misspelt commands and flags.
func TestDidYouMean(t *testing.T) {
	for line, want := range map[string]string{
		"atach":             `unknown command "atach": did you mean llmtop attach?`,
		"Reply":             `did you mean llmtop replay?`,
		"repo":              `did you mean llmtop report?`,
		"nonsense":          `unknown command "nonsense": it is no address, model or recording either: see llmtop --help`,
		"engine lst":        `unknown command "lst": did you mean llmtop engine list?`,
		"engine remove":     `unknown command "remove": use llmtop engine install`,
		"help benhc":        `unknown command "benhc": did you mean llmtop bench?`,
		"--them light":      `unknown flag: --them: did you mean --temp or --theme?`,
		"bench --ratee 3":   `unknown flag: --ratee: did you mean --rate?`,
		"attach --headles":  `did you mean --headless?`,
		"run --nonsense":    `unknown flag: --nonsense`,
		"8080 --healdess":   `did you mean --headless?`,
		"bench --slo ttft=": `--slo "ttft="`,
	} {
		_, _, err := llmtop(t, strings.Fields(line)...)
		if err == nil || exit.Code(err) != exit.CodeUsage || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("llmtop %s: %v, want %q", line, err, want)
		}
	}
}
