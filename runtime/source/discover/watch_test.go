package discover

import (
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// TestSpeeds: the rate follows from the tokens generated between two searches, if their number is known.
func TestSpeeds(t *testing.T) {
	for _, tt := range []struct {
		name        string
		before, now Progress
		want        event.Reading
	}{
		{"one request", Progress{"0/1": 10}, Progress{"0/1": 30}, event.Reading{V: 10, Origin: event.Derived}},
		{"another one has begun", Progress{"0/1": 10}, Progress{"0/1": 30, "1/8": 4}, event.Reading{V: 12, Origin: event.Derived}},
		{"one has ended", Progress{"0/1": 10, "1/7": 5}, Progress{"0/1": 30}, event.Absent(event.NotYet)},
		{"idle", Progress{}, Progress{}, event.Reading{Origin: event.Derived}},
		{"restarted", Progress{"all": 100}, Progress{"all": 10}, event.Absent(event.NotYet)},
		{"first look", nil, Progress{"all": 10}, event.Absent(event.NotYet)},
	} {
		at := time.Unix(1000, 0)
		w := Watch{before: map[string]made{"http://x": {at, tt.before}}}
		if tt.before == nil {
			w.before = nil
		}
		f := Found{Address: "http://x", progress: tt.now}
		if w.rate(&f, at.Add(2*time.Second)); f.Load.Decode != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, f.Load.Decode, tt.want)
		}
	}
	w := Watch{before: map[string]made{"x": {time.Unix(1000, 0), Progress{"all": 1}}}}
	reported := event.Reading{V: 5, Origin: event.Reported}
	f := Found{Address: "x", progress: Progress{"all": 9}, Load: Load{Decode: reported}}
	if w.rate(&f, time.Unix(1001, 0)); f.Load.Decode != reported {
		t.Errorf("the reported rate became %+v", f.Load.Decode)
	}
}

// Builds of llama.cpp differ in the JSON of a slot's next token.
func TestNextToken(t *testing.T) {
	for text, want := range map[string]float64{`[{"n_decoded":7}]`: 7, `{"n_decoded":8}`: 8, `[]`: 0, `null`: 0} {
		var n next
		if err := n.UnmarshalJSON([]byte(text)); err != nil || n.Decoded != want {
			t.Errorf("%s: %v, %v", text, n.Decoded, err)
		}
	}
	var n next
	if n.UnmarshalJSON([]byte(`"x"`)) == nil || n.UnmarshalJSON([]byte(`[3]`)) == nil {
		t.Error("nonsense was taken")
	}
}
