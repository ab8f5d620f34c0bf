//go:build unix

package program_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event/eventtest"
)

// newFarm starts n servers with 30 kB of vLLM metrics each.
func newFarm(tb testing.TB, n int) *Farm {
	tb.Helper()
	text, err := os.ReadFile("../../runtime/source/scrape/gather/testdata/vllm.txt")
	if err != nil {
		tb.Fatal(err)
	}
	return NewFarm(tb, string(text), n)
}

// eventually waits for a condition.
func eventually(tb testing.TB, what string, so func() bool) {
	tb.Helper()
	for end := time.Now().Add(2 * time.Minute); !so(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			tb.Fatalf("it never came about: %s", what)
		}
	}
}

// ailing are the servers of a farm, half of which are down in different ways.
type ailing struct {
	*Farm
	well, down []*Farmed
}

func newAiling(t *testing.T, n int) (c ailing) {
	t.Helper()
	c.Farm = newFarm(t, n)
	for i, s := range c.Servers {
		if i%2 == 0 {
			c.well = append(c.well, s)
			continue
		}
		s.Set(t, Refuses+Manner(i/2%5))
		c.down = append(c.down, s)
	}
	return c
}

// polled returns how often the metrics of the healthy servers were read: the sum and the minimum.
func (c ailing) polled() (sum, least int) {
	least = c.well[0].Answered()
	for _, s := range c.well {
		sum, least = sum+s.Answered(), min(least, s.Answered())
	}
	return sum, least
}

// reasons are the reasons in a row of the table, in the order of the kinds of failure.
var reasons = [...]string{"connection refused", "no response in time", "no response in time", "HTTP 500: CUDA error: out of memory", "response truncated"}

// sinceWhen matches how long a server has been down.
var sinceWhen = regexp.MustCompile(`DISCONNECTED \d\d:\d\d:\d\d`)

// row returns the line of the screen with a server, "" if absent.
func row(screen string, s *Farmed) string {
	for line := range strings.Lines(screen) {
		if strings.Contains(line, s.URL+" ") {
			return line
		}
	}
	return ""
}

// TestHalfOfTwoHundredServersAreDown makes servers refuse, hang, trickle, fail and break off. The screen shows them
// with the time and reason; healthy servers are polled as if they were alone; no server is polled again before it has
// answered; and nothing leaks.
func TestHalfOfTwoHundredServersAreDown(t *testing.T) {
	t.Parallel()
	c := newAiling(t, 200)
	p := start(t, 200, 130, append([]string{"attach", "--interval", "500ms"}, c.URLs()...)...)
	p.waitFor(t, "200 engines")
	p.keys(t, "7/disconnected\r")
	p.waitFor(t, "100 of 200 replicas")
	eventually(t, "the screen names those that are down, with the time since when and why", func() bool { // a frame arrives in pieces
		shown := p.text()
		for i, s := range c.down {
			if line := row(shown, s); !sinceWhen.MatchString(line) || !strings.Contains(line, reasons[i%len(reasons)]) {
				return false
			}
		}
		return !slices.ContainsFunc(c.well, func(s *Farmed) bool { return row(shown, s) != "" })
	})
	p.keys(t, "\x1b")
	p.waitFor(t, "200 replicas, by")
	frames := p.count()
	polls, _ := c.polled()
	eventually(t, "all healthy servers were polled often", func() bool { _, least := c.polled(); return least >= 20 })
	now, _ := c.polled()
	if frames, polls := p.count()-frames, now-polls; frames < polls/(100*eventtest.Step(4)) { // five times as many if the machine is fast enough
		t.Errorf("%d frames while %d answers came", frames, polls)
	}
	for i, s := range c.Servers {
		if conns, questions := s.Most(); conns > 2 || questions > 1 {
			t.Errorf("%s had %d connections and %d questions at a time", s.URL, conns, questions)
		}
		if i%2 == 1 && s.Asked() > 20 { // each healthy server was polled at least that often
			t.Errorf("%s is down and was asked %d times", s.URL, s.Asked())
		}
	}

	one := c.well[7]
	one.Set(t, Refuses)
	p.keys(t, "/disconnected\r")
	p.waitFor(t, "101 of 200 replicas")
	eventually(t, "it is named as well", func() bool { return sinceWhen.MatchString(row(p.text(), one)) })
	one.Set(t, Well)
	p.waitFor(t, "100 of 200 replicas")
	p.keys(t, "q")
	if code := p.exit(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	eventually(t, "all connections are closed", func() bool { return c.Open() == 0 })
}
