package probe

import "testing"

// TestSampling follows the windows in which picks are counted: passes of 1 ms with 10 calls each.
func TestSampling(t *testing.T) {
	for _, c := range []struct {
		name    string
		every   int
		counted int // of 1000 passes, at least
		most    int
	}{
		{"all", 1, 1000, 1000},
		{"one in four", 4, 230, 290},
		{"within the budget", 0, 80, 160},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := sampling{every: c.every}
			var gathers uint64
			counted := 0
			for at := int64(1e6); at <= 1000e6; at += 1e6 {
				switch {
				case s.full(at, gathers):
					s.close(at, gathers)
				case s.due():
					s.open(at, gathers)
				}
				if s.isOpen() {
					gathers += 10
				}
				if s.add(at, at+1e6-1) {
					counted++
				}
			}
			if counted < c.counted || counted > c.most {
				t.Errorf("%d of 1000 passes are counted, want %d to %d", counted, c.counted, c.most)
			}
		})
	}
	s := sampling{every: 2}
	s.open(10, 0)
	if s.add(5, 15) {
		t.Error("a pass that began before the window is counted")
	}
	s.close(30, 0)
	if s.add(25, 35) || !s.add(15, 25) {
		t.Error("a pass is counted that ended after the window, or not one inside")
	}
}
