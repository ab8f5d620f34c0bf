package discover

import (
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/scrape/engine"
)

// tokens are those of each request.
type tokens = map[string]float64

// TestSpeeds: the rate follows from the tokens generated between two searches, if their number is known.
func TestSpeeds(t *testing.T) {
	for _, tt := range []struct {
		name        string
		before, now tokens
		want        event.Reading
	}{
		{"one request", tokens{"0/1": 10}, tokens{"0/1": 30}, event.Reading{V: 10, Origin: event.Derived}},
		{"another one has begun", tokens{"0/1": 10}, tokens{"0/1": 30, "1/8": 4}, event.Reading{V: 12, Origin: event.Derived}},
		{"one has ended", tokens{"0/1": 10, "1/7": 5}, tokens{"0/1": 30}, event.Absent(event.NotYet)},
		{"idle", tokens{}, tokens{}, event.Reading{Origin: event.Derived}},
		{"restarted", tokens{"all": 100}, tokens{"all": 10}, event.Absent(event.NotYet)},
		{"first look", nil, tokens{"all": 10}, event.Absent(event.NotYet)},
	} {
		at := time.Unix(1000, 0)
		w := Watch{lookAt: at, tokens: map[string]tokens{"http://x": tt.before}}
		f := []Found{{Address: "http://x", tokens: tt.now}}
		if w.rate(f, at.Add(2*time.Second)); f[0].Load.Decode != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, f[0].Load.Decode, tt.want)
		}
	}
	w := Watch{lookAt: time.Unix(1000, 0), tokens: map[string]tokens{"x": {"all": 1}}}
	reported := event.Reading{V: 5, Origin: event.Reported}
	f := []Found{{Address: "x", tokens: tokens{"all": 9}, Load: engine.Load{Decode: reported}}}
	if w.rate(f, time.Unix(1001, 0)); f[0].Load.Decode != reported {
		t.Errorf("the reported rate became %+v", f[0].Load.Decode)
	}
}
