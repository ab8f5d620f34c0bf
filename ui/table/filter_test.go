package table

import (
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
)

const now = event.Time(100 * time.Second)

// finished returns a warm request with a TTFT of 600 ms and 20 ms per further token.
func finished() *store.Request {
	return &store.Request{
		ID: 7, State: event.StateFinished, Reason: "stop", Group: "adapter-a", Label: "Go code",
		Enqueued: now - event.Time(30*time.Second), First: now - event.Time(29*time.Second),
		PromptTokens: 512, CachedTokens: 128, Generated: 40, Targets: store.Targets{TTFT: 200 * time.Millisecond},
		STIL: event.DerivedValue(.05), TTFT: event.DerivedValue(.6), TPOT: event.DerivedValue(.02), E2EL: event.DerivedValue(1.38), DecodeRate: event.DerivedValue(50),
		ITL: metric.Summary{Count: 39, P99: 90e6}, Stalls: make([]store.Stall, 2),
	}
}

// queued returns a cold request without measurements.
func queued() *store.Request {
	notYet := event.Absent(event.NotYet)
	return &store.Request{
		ID: 8, State: event.StateQueued, Cold: true, Enqueued: now - event.Time(time.Second), Targets: store.Targets{TTFT: 200 * time.Millisecond},
		STIL: notYet, TTFT: notYet, TPOT: notYet, E2EL: notYet, DecodeRate: notYet,
	}
}

func TestFilters(t *testing.T) {
	for _, c := range []struct {
		text           string
		finished, cold bool // whether it selects the request
	}{
		{"", true, true},
		{"   ", true, true},
		{"ttft>500ms", true, false},
		{"ttft>0.5s", true, false},
		{"TTFT>=600ms", true, false},
		{"ttft>600ms", false, false},
		{"-ttft>600ms", true, false}, // absent values match nothing
		{"ttft<600000us", false, false},
		{"ttft<=600000µs", true, false},
		{"ttft=600ms", true, false},
		{"ttft!=600ms", false, false},
		{"queue>10ms tpot<50ms e2el>1s itl>50ms rate>20", true, false},
		{"age<5s", false, true},
		{"age>0.4m", true, false},
		{"prompt>0.5k", true, false},
		{"prompt>1M", false, false},
		{"cached=128 gen>=40 stalls=2", true, false},
		{"id=8", false, true},
		{"#8", false, true},
		{"#80", false, false},
		{"group=adapter-a", true, false},
		{"group=ADAPTER-A", true, false},
		{"group=adapter", false, false},
		{"group!=adapter-a", false, true},
		{"-group=adapter-a", false, true},
		{`label="go code"`, true, false},
		{"reason=stop", true, false},
		{"state=queued", false, true},
		{"queued", false, true},
		{"finished", true, false},
		{"failed", false, false},
		{"-failed", true, true},
		{"active", false, true},
		{"missed", true, false},
		{"met", false, false},
		{"cold", false, true},
		{"warm stalled", true, false},
		{"-warm", false, true},
		{"dapter", true, false},
		{"GO", true, false},
		{"ttft>500ms group=adapter-a failed", false, false},
		{"ttft>500ms group=adapter-a -failed", true, false},
	} {
		f, err := RequestFilters.Parse(c.text)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if a, b := f.Match(finished(), now), f.Match(queued(), now); a != c.finished || b != c.cold {
			t.Errorf("%q selects %v and %v, want %v and %v", c.text, a, b, c.finished, c.cold)
		}
		if f.Text() != strings.TrimSpace(c.text) {
			t.Errorf("Text of %q is %q", c.text, f.Text())
		}
	}
}

func TestFilterErrors(t *testing.T) {
	for text, want := range map[string]string{
		"tftt>5ms":     `unknown column "tftt": use one of id state age`,
		"ttft>fast":    `cannot compare ttft with "fast": write a value such as ttft>500ms`,
		"ttft>500":     `cannot compare ttft with "500": write a value such as ttft>500ms`,
		"ttft>5parsec": `write a value such as ttft>500ms`,
		"gen>many":     `cannot compare gen with "many": write a value such as gen>100`,
		"gen>5ms":      `cannot compare gen with "5ms"`,
		"rate<":        `cannot compare rate with "": write a value such as rate<20`,
		"ttft":         "ttft is a column: compare it with a value, as in ttft>500ms",
		"-group":       "group is a column: compare it with a value, as in group=word",
		"group>a":      "group is a word: compare it with = or !=",
		`label="a b`:   "unclosed quote",
		"-":            `"-" is empty`,
		`""`:           `"" is empty`,
		">5":           `unknown column ""`,
		"ok =5":        `unknown column ""`,
		"gen>1e9999":   `cannot compare gen with "1e9999"`,
	} {
		_, err := RequestFilters.Parse(text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestMissedTargets(t *testing.T) {
	r := finished()
	if !Missed(r, now) {
		t.Error("600 ms met a target of 200 ms")
	}
	r.HitTarget = true
	if Missed(r, now) {
		t.Error("a met target is missed")
	}
	r = queued()
	if Missed(r, now) {
		t.Error("a cold request has no target")
	}
	r.Cold = false
	if !Missed(r, now) {
		t.Error("a request that waits for longer than its target has not missed it")
	}
	if Missed(r, r.Enqueued+event.Time(100*time.Millisecond)) {
		t.Error("a target was missed before its time")
	}
	r.TTFT = event.Absent(event.NotReported)
	if Missed(r, now) {
		t.Error("a TTFT that is not reported missed its target")
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "ttft>500ms group=a -failed", `label="a b" #7`, "!=", "-", "gen>=1k", "age<5µs", "\"", "ttft>\xff", "<=>"} {
		f.Add(seed)
	}
	a, b := finished(), queued()
	f.Fuzz(func(t *testing.T, text string) {
		filter, err := RequestFilters.Parse(text)
		if err != nil {
			if err.Error() == "" {
				t.Error("an error has no text")
			}
			return
		}
		again, err := RequestFilters.Parse(filter.Text())
		if err != nil {
			t.Fatalf("%q parses, but its Text %q does not: %v", text, filter.Text(), err)
		}
		for _, r := range []*store.Request{a, b, {}} {
			if filter.Match(r, now) != again.Match(r, now) {
				t.Errorf("%q and its Text %q select different requests", text, filter.Text())
			}
		}
	})
}
