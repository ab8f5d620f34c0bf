package sdk

import (
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// Suite checks an example engine against the protocol.
type Suite struct{ Binary string }

// Run runs all tests.
func (s Suite) Run(t *testing.T) {
	s.Short(t)
	t.Run("compact", s.compact)
	t.Run("killed", s.killed)
	t.Run("reclaimed", s.reclaimed)
	t.Run("place", s.place)
	t.Run("loopback", s.loopback)
	t.Run("hostile", s.hostile)
}

// Short runs the tests with concurrency, for an engine that a sanitizer slows down.
func (s Suite) Short(t *testing.T) {
	t.Run("lines", s.lines)
	t.Run("text", s.text)
	t.Run("passes", s.passes)
	t.Run("sampled", s.sampled)
	t.Run("late", s.late)
	t.Run("stalled", s.stalled)
	t.Run("csv", s.csv)
}

// emitted returns the number of events for the given numbers of requests and tokens.
func emitted(requests, tokens uint64) map[string]uint64 {
	return map[string]uint64{
		"request": 3 * requests, "stage": 6 * requests, "token": tokens * requests, "step": tokens * requests, "kv": requests, "log": 1,
	}
}

// watched runs an engine to its end with a reader that keeps up.
func (s Suite) watched(t *testing.T, variables ...string) *Reader {
	t.Helper()
	p := Start(t, s.Binary, append(variables, "ADDRESS=unix:"+Socket(t))...)
	r := Connect(t, p.Address, check)
	r.Read("synced")
	p.Go()
	r.Read("log") // the last line that it sends without a request
	p.Done()
	p.End()
	r.Rest()
	if last := r.Lines[len(r.Lines)-1]; last.Type != "bye" {
		t.Errorf("the last line is not bye: %s", last.Raw)
	}
	return r
}

func (s Suite) lines(t *testing.T) {
	r := s.watched(t, "REQUESTS=20", "TOKENS=50", "THREADS=4")
	r.Expect(emitted(20, 50))
	if len(r.Lost) != 0 {
		t.Errorf("dropped %v with a reader that keeps up", r.Lost)
	}
	for kind, keys := range map[string]map[string]any{
		"hello":   {"v": "1.0", "version": "1.2", "state": "ready"},
		"req":     {"r": 7, "state": "queued", "group": `adapter-"x"`, "label": "chat", "max": 64, "in": 4},
		"stage":   {"r": 7, "stage": "attention", "l": 1, "n": 4},
		"kv":      {"used": 16, "total": 4096},
		"step":    {"s": 301, "n": 1, "x": []any{10, 200, 30, 400, 50, 60}, "fpm": map[string]any{"dp_rank": 0, "scheduled_requests": map[string]any{"num_decode_requests": 1}}},
		"tok":     {"r": 7, "i": 0, "d": 1000, "s": 301, "w": 60, "l": -0.25},
		"log":     {"m": "all is done"},
		"experts": {"layers": 2, "experts": 4, "used": 2, "p": []any{0, 0, 0, 0, 20, 20, 20, 20}, "pt": 40, "d": []any{0, 1000, 0, 1000, 0, 0, 0, 0}, "dt": 1000},
	} {
		if _, err := r.find(kind, keys); err != nil {
			t.Error(err)
		}
	}
	if _, err := r.find("req", map[string]any{"r": 7, "state": "finished", "why": "length", "in": 4, "cached": 1, "out": 50}); err != nil {
		t.Error(err)
	}
	counts := r.Of("count", 0)
	c := counts[len(counts)-1].Keys["c"].(map[string]any)
	for name, want := range map[string]float64{
		"requests_queued": 20, "requests_finished": 20, "prompt_tokens": 80, "generated_tokens": 1000, "tokenizer_tokens": 80,
	} {
		if c[name] != want {
			t.Errorf("counter %s is %v, not %v", name, c[name], want)
		}
	}
	for _, l := range r.Lines {
		if l.Keys["p"] != nil && l.Type == "tok" || l.Keys["prompt"] != nil {
			t.Fatalf("unexpected text: %s", l.Raw)
		}
	}
	ordered(t, r)
}

// ordered checks that the tokens of a request arrive in order.
func ordered(t *testing.T, r *Reader) {
	t.Helper()
	tokens := r.Of("tok", 7)
	for i, l := range tokens {
		if l.Keys["i"] != float64(i) {
			t.Fatalf("token %v comes at position %d", l.Keys["i"], i)
		}
	}
	if len(tokens) != 50 {
		t.Errorf("%d tokens of request 7 came", len(tokens))
	}
}

func (s Suite) text(t *testing.T) {
	r := s.watched(t, "TEXT=1")
	for i, want := range []any{" \"word\"\n", []any{226, 150}} {
		if _, err := r.find("tok", map[string]any{"r": 2, "i": i, "p": want}); err != nil {
			t.Error(err)
		}
	}
	if _, err := r.find("req", map[string]any{"r": 2, "prompt": "Once upon a time"}); err != nil {
		t.Error(err)
	}
}

func (s Suite) compact(t *testing.T) {
	r := s.watched(t, "STEPS=0", "TOKENS=25000", "REQUESTS=4", "THREADS=2", "RING=262144", "BACKLOG=16777216")
	r.Expect(map[string]uint64{"token": 100000})
	if r.Lost["token"] != 0 {
		t.Errorf("dropped %v", r.Lost)
	}
	if r.Bytes > 6<<20 {
		t.Errorf("100,000 tokens take %d bytes", r.Bytes)
	}
	t.Logf("100,000 tokens take %d bytes", r.Bytes)
}

// csv compares the stages in the file with those on the wire.
func (s Suite) csv(t *testing.T) {
	name := filepath.Join(t.TempDir(), "stages.csv")
	r := s.watched(t, "CSV="+name, "REQUESTS=8", "THREADS=2")
	rows := rowsOf(t, name)
	if strings.Join(rows[0], ",") != "stage,elapsed_us" || len(rows) != 1+5*8 {
		t.Errorf("%d rows under %v", len(rows)-1, rows[0])
	}
	inFile, onWire := map[string]float64{}, map[string]float64{}
	for _, row := range rows[1:] {
		us, err := strconv.ParseFloat(row[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		inFile[row[0]] += us
	}
	for _, l := range r.Of("stage", 0) {
		onWire[l.Keys["stage"].(string)] += l.Keys["dur"].(float64) / 1e3
	}
	for stage, us := range onWire {
		if diff := inFile[stage] - us; diff > 1e-3 || diff < -1e-3 {
			t.Errorf("%s: %v us in the file, %v us on the wire", stage, inFile[stage], us)
		}
	}
}

// Supported returns why this system has no example engines, or "".
func Supported() string {
	if runtime.GOOS == "windows" {
		return "the emitters for C and Rust want a Unix"
	}
	return ""
}
