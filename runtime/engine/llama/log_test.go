//go:build !nollama && (linux || darwin || windows) && (amd64 || arm64)

package llama

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestJournal joins pieces to lines, and keeps warnings and errors.
func TestJournal(t *testing.T) {
	var j journal
	var got []string
	j.listen(func(line string) { got = append(got, line) }, nil)
	for _, piece := range []struct {
		level int32
		text  string
	}{
		{2, "one\n"},
		{2, "two, "},
		{logContinue, "and on\n"},
		{2, "....."},
		{logContinue, "....\n"},
		{4, "three\nfour\r\n"},
		{3, "five"},
		{logContinue, "\n"},
		{2, ""},
		{2, "\n"},
		{99, "six\n"},
		{-1, "seven\n"},
	} {
		j.write(piece.level, piece.text)
	}
	want := []string{"one", "two, and on", "three", "four", "five", "six"} // "seven" has a lower level
	if !slices.Equal(got, want) {
		t.Errorf("lines %q, want %q", got, want)
	}
	if c := j.complaints(); c != "three; four; six" {
		t.Errorf("complaints %q", c)
	}
	for i := range 20 {
		j.write(4, fmt.Sprintf("again %d\n", i))
	}
	if c := j.complaints(); strings.Count(c, ";") != maxComplaints-1 || !strings.HasSuffix(c, "again 19") {
		t.Errorf("complaints %q", c)
	}
	j.mark()
	if c := j.complaints(); c != noReason {
		t.Errorf("complaints %q after the mark", c)
	}
}

// TestJournalSpied passes lines to a spy, and only to the spy if quiet is set.
func TestJournalSpied(t *testing.T) {
	var j journal
	var got []string
	j.listen(func(line string) { got = append(got, line) }, nil)
	j.during(func(line string) { got = append(got, "spy "+line) }, false, func() { j.write(2, "a\n") })
	j.during(func(line string) { got = append(got, "spy "+line) }, true, func() { j.write(2, "b\n") })
	j.write(2, "c\n")
	if want := []string{"spy a", "a", "spy b", "c"}; !slices.Equal(got, want) {
		t.Errorf("lines %q, want %q", got, want)
	}
}

// TestEstimateReadsTheLog reads sizes from lines of real logs.
func TestEstimateReadsTheLog(t *testing.T) {
	var s estimate
	for _, line := range []string{
		"llama_context:        CPU  output buffer size =     0.50 MiB",
		"llama_kv_cache:        CPU KV buffer size =     0.00 MiB",
		"llama_kv_cache: size =    8.00 MiB (  4096 cells,   8 layers,  4/1 seqs), K (f16):    4.00 MiB, V (f16):    4.00 MiB",
		"llama_memory_recurrent: size =    2.00 MiB (     1 cells,  24 layers,  1 seqs), R (f32):    0.50 MiB, S (f32):    1.50 MiB",
		"sched_reserve:        CPU compute buffer size =     7.25 MiB",
		"sched_reserve:      CUDA0 compute buffer size =    64.00 MiB",
		"sched_reserve:  CUDA_Host compute buffer size =     1.00 MiB",
		"load_tensors:   CPU_Mapped model buffer size =    11.26 MiB",
	} {
		s.read(line, []device{{name: "CUDA0"}})
	}
	want := estimate{kv: 10 << 20, host: 8.75 * (1 << 20), onDevice: 64 << 20}
	if s != want {
		t.Errorf("read %+v, want %+v", s, want)
	}
}

func FuzzEstimate(f *testing.F) {
	f.Add("llama_kv_cache: size =    8.00 MiB (")
	f.Add("sched_reserve:        CPU compute buffer size =     7.25 MiB")
	f.Add("x: size = 1e999 MiB")
	f.Fuzz(func(t *testing.T, line string) {
		var s estimate
		s.read(line, []device{{name: "CUDA0"}})
		if s.kv < 0 || s.host < 0 || s.onDevice < 0 || s.kv != s.kv {
			t.Errorf("%q gives %+v", line, s)
		}
	})
}

func FuzzJournal(f *testing.F) {
	f.Add(int32(2), "a\nb")
	f.Add(int32(logContinue), "\r\n\n")
	f.Add(int32(2), "0\r")
	f.Fuzz(func(t *testing.T, level int32, text string) {
		var j journal
		n := 0
		j.listen(func(line string) {
			n++
			if strings.ContainsRune(line, '\n') {
				t.Errorf("a line with a break: %q", line)
			}
		}, nil)
		j.write(level, text)
		if n > strings.Count(text, "\n") {
			t.Errorf("%d lines of %q", n, text)
		}
	})
}

// TestKernels extracts the variant of the backend from its file name.
func TestKernels(t *testing.T) {
	for line, want := range map[string]string{
		"load_backend: loaded CPU backend from /opt/x/libggml-cpu-zen4.so":              "zen4",
		"load_backend: loaded CPU backend from /opt/a b/libggml-cpu-sapphirerapids.so ": "sapphirerapids",
		"load_backend: loaded CPU backend from /opt/x/libggml-cpu.so":                   "",
		"load_backend: loaded CUDA backend from /opt/x/libggml-cuda.so":                 "",
	} {
		var l library
		if l.noteBackend(line); l.kernels != want {
			t.Errorf("%q: kernels %q, want %q", line, l.kernels, want)
		}
	}
}
