package cmd

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/profiler/report"
)

// TestReportOfRecording checks that a benchmark's requests are the same in its report and in that of its recording.
func TestReportOfRecording(t *testing.T) {
	a := &answers{kind: "llamacpp"}
	folder := t.TempDir()
	file := func(name string) string { return filepath.Join(folder, name) }
	args := []string{"bench", a.serve(t), "-p", "Call me Ishmael.", "--concurrency", "2", "-n", "5", "--requests", "4", "--repeats", "1", "--warmup", "0"}
	if _, stderr, err := llmtop(t, append(args, "--record", file("r.llmtop"), "--json", file("live.json"))...); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	if out, stderr, err := llmtop(t, "report", file("r.llmtop"), "--json", file("again.json")); err != nil {
		t.Fatalf("%v\n%s%s", err, out, stderr)
	}
	live, replayed := readReport(t, file("live.json")), readReport(t, file("again.json"))
	if !reflect.DeepEqual(replayed.Requests, live.Requests) {
		t.Errorf("requests replayed %+v, live %+v", replayed.Requests, live.Requests)
	}
}

func TestReportRefuses(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.json")
	doc, err := json.Marshal(&report.Report{SchemaVersion: report.SchemaVersion})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(empty, doc, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"needs one report": {},
		"no such file":     {"missing.json"},
		"has no stages":    {empty, "--csv-stages", "-"},
	} {
		if _, _, err := llmtop(t, append([]string{"report"}, args...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
}

// TestOutputsToOneFile checks that a command refuses to write two outputs to one file, and leaves the file alone.
func TestOutputsToOneFile(t *testing.T) {
	dir := t.TempDir()
	name, link := filepath.Join(dir, "out"), filepath.Join(dir, "link.csv")
	if err := os.Symlink("out", link); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"report", "r.json", "--json", name, "--csv", name},
		{"report", "r.llmtop", "--perfetto", name, "--json", dir + "/./out"},
		{"compare", "a", "b", "--json", name, "--markdown", name},
		{"run", "--headless", "--json", name, "--record", name},
		{"replay", "r.llmtop", "--cast", name, "--svg", name},
		{"run", "--headless", "--json", name, "--out", link},
		{"report", "r.json", "--out", "-", "--out", "-.csv"},
	} {
		code := exit.CodeUsage
		if args[0] == "compare" {
			code = exit.CodeNotCompared
		}
		if _, _, err := llmtop(t, args...); exit.Code(err) != code || !strings.Contains(err.Error(), "both write to") {
			t.Errorf("%v: %v", args, err)
		}
		if _, err := os.Stat(name); err == nil {
			t.Fatalf("%v: the file exists", args)
		}
	}
}

// TestOutputOverInput checks that a command refuses to overwrite a file that it reads, under any name.
func TestOutputOverInput(t *testing.T) {
	dir := t.TempDir()
	name, other, link := filepath.Join(dir, "in"), filepath.Join(dir, "other"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(name, []byte("kept"), 0o600), os.WriteFile(other, []byte("x"), 0o600), os.Symlink(name, link)); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"report", name, "--json", name},
		{"report", name, "--perfetto", link},
		{"replay", name, "--headless", "--html", dir + "/./in"},
		{"replay", name, "--cast", name},
		{"run", name, "--headless", "-p", "x", "--json", name},
		{"run", "--headless", "-f", other, "-f", name, "--csv", name},
		{"bench", "--prompts", name, "--json", name},
		{"compare", other, name, "--json", name},
		{"compare", other + "," + name, other, "--markdown", name},
	} {
		if _, _, err := llmtop(t, args...); err == nil || !strings.Contains(err.Error(), "it would overwrite the input") {
			t.Errorf("%v: %v", args, err)
		}
		if kept, err := os.ReadFile(name); string(kept) != "kept" {
			t.Fatalf("%v: the file has %q, %v", args, kept, err)
		}
	}
}

// TestFailedRunKeepsOldReport checks that a run without a report leaves that of an earlier one, and nothing else behind.
func TestFailedRunKeepsOldReport(t *testing.T) {
	dir := t.TempDir()
	old, fresh, bad := filepath.Join(dir, "old"), filepath.Join(dir, "new"), filepath.Join(dir, "absent", "file")
	if err := os.WriteFile(old, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"report", filepath.Join(dir, "absent"), "--json", old, "--csv", fresh},
		{"bench", "http://127.0.0.1:1", "--json", old, "--csv", fresh},
		{"run", "--headless", "-p", "x", "--ctx", "1", "--json", old, "--csv", fresh},
		{"compare", bad, bad, "--json", old, "--markdown", fresh},
		{"compare", bad, bad, "--json", old, "--markdown", bad},
	} {
		if _, _, err := llmtop(t, args...); err == nil {
			t.Errorf("%v did not fail", args)
		}
		if kept, err := os.ReadFile(old); string(kept) != "kept" {
			t.Fatalf("%v: the old report has %q, %v", args, kept, err)
		}
		if _, err := os.Stat(fresh); err == nil {
			t.Errorf("%v left an empty report", args)
		}
	}
}

// TestErrorsNameTheFileOnce checks the errors of commands that read a report or a recording.
func TestErrorsNameTheFileOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "folder") // the name of the other one may be part of its parent's
	text := filepath.Join(dir, "text")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(text, []byte("no report"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{filepath.Join(dir, "missing"), text, dir} {
		for _, args := range [][]string{{"report", name}, {"replay", name}, {"compare", name, name}} {
			if _, _, err := llmtop(t, args...); err == nil || strings.Count(err.Error()+" ", filepath.Base(name)) != 1 {
				t.Errorf("%v: %v, want the name once", args, err)
			}
		}
	}
}

// TestDamagedRecording checks that a report says what its recording lacks.
func TestDamagedRecording(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "whole.llmtop")
	if _, stderr, err := llmtop(t, "run", "--headless", "-n", "64", "-p", "Call me Ishmael.", "--record", whole); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	raw, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	damaged := slices.Clone(raw)
	damaged[len(raw)/2] ^= 0xff
	for want, content := range map[string][]byte{"": raw, "the recording is damaged": damaged, "the recording has no end": raw[:len(raw)-1]} {
		name := filepath.Join(t.TempDir(), "session.llmtop")
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
		out, stderr, err := llmtop(t, "report", name)
		partial := strings.Contains(out, "This report is partial")
		if err != nil || !strings.Contains(stderr, want) || strings.Contains(stderr, ": 0") || partial != (want != "") || want == "" && stderr != "" {
			t.Errorf("%q: %v, partial %v, notes %q", want, err, partial, stderr)
		}
	}
}
