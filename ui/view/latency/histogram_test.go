package latency

import (
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// The longest times are kept in descending order, one per request.
func TestOutliersAreTheLongest(t *testing.T) {
	var o outliers
	for i, ns := range []float64{5, 9, 1, 7, 9, 3, 12, 8} {
		o.add(outlier{ns, event.RequestID(i%4 + 1), i})
	}
	// Request 3 had 1 and 12, request 2 had 9 and 3, request 1 had 5 and 9, request 4 had 7 and 8.
	want := [...]outlier{{12, 3, 6}, {9, 2, 1}, {9, 1, 4}}
	if o.n != len(want) || o.list != want {
		t.Errorf("%d of %v, want %v", o.n, o.list, want)
	}
	o = outliers{}
	o.add(outlier{4, 1, 0})
	o.add(outlier{3, 1, 1})
	if o.n != 1 || o.list[0].token != 0 {
		t.Errorf("%d of %v, want the longer one of the request", o.n, o.list)
	}
}
