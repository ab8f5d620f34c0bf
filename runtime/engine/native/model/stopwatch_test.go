package model

import (
	"testing"
	"time"

	"github.com/llmtop/llmtop/runtime/engine"
)

// TestStopwatch checks that the parts add up to the elapsed time and keep their ratio.
func TestStopwatch(t *testing.T) {
	var s stopwatch
	b := engine.BatchTime{Layers: make([]engine.LayerTime, 1)}
	began := time.Now()
	s.start()
	time.Sleep(2 * time.Millisecond)
	b.Embed = s.lap()
	time.Sleep(8 * time.Millisecond)
	b.Layers[0].Router = s.lap()
	s.stop(&b)
	most := time.Since(began)
	sum := time.Duration(b.Embed + b.Layers[0].Router)
	if sum < 10*time.Millisecond-time.Microsecond || sum > most {
		t.Errorf("parts add up to %v, want at least the 10ms slept and at most the %v passed", sum, most)
	}
	if b.Embed < int64(2*time.Millisecond-time.Microsecond) || b.Layers[0].Router < int64(8*time.Millisecond-time.Microsecond) {
		t.Errorf("parts are %v and %v, want at least 2ms and 8ms", time.Duration(b.Embed), time.Duration(b.Layers[0].Router))
	}
	if b.Head != 0 || b.Layers[0].Attention != 0 {
		t.Errorf("parts that were not measured are %d and %d ns", b.Head, b.Layers[0].Attention)
	}
}

func TestStopwatchNeverGoesBack(t *testing.T) {
	s := stopwatch{first: ticks() + 1e12, last: ticks() + 1e12}
	if d := s.lap(); d != 0 {
		t.Errorf("a counter that went back gives a lap of %d", d)
	}
	b := engine.BatchTime{Head: 5}
	s.stop(&b)
	if b.Head != 5 {
		t.Errorf("a counter that went back scaled %d", b.Head)
	}
}
