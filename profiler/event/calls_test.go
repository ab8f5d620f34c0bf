package event_test

import (
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// TestSumOfCalls: what is unknown of one pass is unknown of the sum, whichever pass it was.
func TestSumOfCalls(t *testing.T) {
	pass := func(launches, wait event.Reading) *event.Calls { return &event.Calls{Launches: launches, Wait: wait} }
	for _, passes := range [][]*event.Calls{
		{pass(event.MeasuredValue(3), event.Absent(event.NotReported)), pass(event.MeasuredValue(4), event.MeasuredValue(9))},
		{pass(event.MeasuredValue(4), event.MeasuredValue(9)), pass(event.MeasuredValue(3), event.MeasuredValue(-1))},
	} {
		sum := event.NoCalls()
		for _, p := range passes {
			sum.Add(p)
		}
		if sum.Launches != event.MeasuredValue(7) || sum.Wait.OK() || sum.Gap.OK() {
			t.Errorf("%+v", sum)
		}
	}
}
