package probe

import "testing"

// TestSampling follows the windows in which picks are counted: passes of 1 ms with 10 calls each.
func TestSampling(t *testing.T) {
	for _, c := range []struct {
		name    string
		every   int
		counted int // of 20,000 passes, at least
		most    int
	}{
		{"all", 1, 20000, 20000},
		{"one in four", 4, 4900, 5300},
		{"within the budget", 0, 1000, 1400},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := sampling{every: c.every}
			var gathers uint64
			counted := 0
			for at := int64(1e6); at <= 20000e6; at += 1e6 {
				if s.expires(at) {
					s.renew(at)
				}
				switch {
				case s.full(at, gathers):
					s.close(at, gathers)
				case s.due():
					s.open(at, at, gathers)
				}
				if s.isOpen {
					gathers += 10
				}
				if s.add(at, at+1e6-1) {
					counted++
				}
			}
			if counted < c.counted || counted > c.most {
				t.Errorf("%d of 20,000 passes are counted, want %d to %d", counted, c.counted, c.most)
			}
		})
	}
	s := sampling{every: 2}
	s.open(10, 10, 0)
	if s.add(5, 15) {
		t.Error("a pass that began before the window is counted")
	}
	s.close(30, 0)
	if s.add(25, 35) || !s.add(15, 25) {
		t.Error("a pass is counted that ended after the window, or not one inside")
	}
}

// TestLease stops llmtop while picks are counted: the probe may have been detached, so that later passes are not
// counted.
func TestLease(t *testing.T) {
	s := sampling{every: 1}
	s.open(0, 5, 0)
	switch {
	case !s.add(10, 20):
		t.Error("a pass in the window is not counted")
	case s.expires(pickLease/2) || !s.expires(pickLease/2+1) || s.lapsed(pickLease) || !s.lapsed(pickLease+1):
		t.Error("the lease ends at another time")
	case s.add(pickLease-1, pickLease+1):
		t.Error("a pass is counted that ended after the lease")
	}
	s.renew(pickLease)
	if !s.add(pickLease-1, pickLease+1) {
		t.Error("a pass is not counted after the lease was renewed")
	}
	s.close(5*pickLease, 0)
	if s.add(3*pickLease, 4*pickLease) || !s.due() {
		t.Error("the window did not end with its lease")
	}
}
