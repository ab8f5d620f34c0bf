//go:build unix

package cmd_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/runtime/peer"
)

// newFarm starts so many servers that tell 30 kB of vLLM's metrics each.
func newFarm(tb testing.TB, n int) *peer.Farm {
	tb.Helper()
	text, err := os.ReadFile("../runtime/scrape/gather/testdata/vllm.txt")
	if err != nil {
		tb.Fatal(err)
	}
	return peer.NewFarm(tb, string(text), n)
}

// eventually waits until something is so.
func eventually(tb testing.TB, what string, so func() bool) {
	tb.Helper()
	for end := time.Now().Add(2 * time.Minute); !so(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			tb.Fatalf("it never came about: %s", what)
		}
	}
}

// ailing are the servers of a farm, of which every other one is down in a way of its own.
type ailing struct {
	*peer.Farm
	well, down []*peer.Farmed
}

func newAiling(t *testing.T, n int) (c ailing) {
	t.Helper()
	c.Farm = newFarm(t, n)
	for i, s := range c.Servers {
		if i%2 == 0 {
			c.well = append(c.well, s)
			continue
		}
		s.Set(t, peer.Refuses+peer.Manner(i/2%5))
		c.down = append(c.down, s)
	}
	return c
}

// told is how often those that are well have told their metrics.
func (c ailing) told() (sum, least int) {
	least = c.well[0].Told()
	for _, s := range c.well {
		sum, least = sum+s.Told(), min(least, s.Told())
	}
	return sum, least
}

// reasons are what a row says of why, in the order of the manners.
var reasons = [...]string{"connection refused", "does not answer in time", "does not answer in time", "answers 500: CUDA error: out of memory", "broke off"}

// sinceWhen is how a row says that a server is down.
var sinceWhen = regexp.MustCompile(`DISCONNECTED \d\d:\d\d:\d\d`)

// row is the line of the screen that names a server, "" if there is none.
func row(screen string, s *peer.Farmed) string {
	for line := range strings.Lines(screen) {
		if strings.Contains(line, s.URL+" ") {
			return line
		}
	}
	return ""
}

// TestHalfOfTwoHundredServersAreDown: they refuse, hang, trickle, fail and break off. The screen goes on, and names them with the time since when; those that
// are well are asked as if they were alone; nobody is asked again before he has answered; and nothing is left at the end.
func TestHalfOfTwoHundredServersAreDown(t *testing.T) {
	c := newAiling(t, 200)
	p := start(t, 200, 130, append([]string{"attach", "--interval", "500ms"}, c.URLs()...)...)
	p.waitFor(t, "200 engines")
	p.keys(t, "7/disconnected\r")
	p.waitFor(t, "100 of 200 replicas")
	eventually(t, "the screen names those that are down, with the time since when and why", func() bool { // a frame comes in pieces
		shown := p.text()
		for i, s := range c.down {
			if line := row(shown, s); !sinceWhen.MatchString(line) || !strings.Contains(line, reasons[i%len(reasons)]) {
				return false
			}
		}
		return !slices.ContainsFunc(c.well, func(s *peer.Farmed) bool { return row(shown, s) != "" })
	})
	p.keys(t, "\x1b")
	p.waitFor(t, "200 replicas, by")
	frames := p.count()
	polls, _ := c.told()
	eventually(t, "all that are well have told often", func() bool { _, least := c.told(); return least >= 20 })
	now, _ := c.told()
	if frames, polls := p.count()-frames, now-polls; frames < polls/100 { // five times as many while there is time for all of them
		t.Errorf("%d frames while %d answers came", frames, polls)
	}
	for i, s := range c.Servers {
		if conns, questions := s.Most(); conns > 2 || questions > 1 {
			t.Errorf("%s had %d connections and %d questions at a time", s.URL, conns, questions)
		}
		if i%2 == 1 && s.Asked() > 20 { // by then each of those that are well has been asked that often at least
			t.Errorf("%s is down and was asked %d times", s.URL, s.Asked())
		}
	}

	one := c.well[7]
	one.Set(t, peer.Refuses)
	p.keys(t, "/disconnected\r")
	p.waitFor(t, "101 of 200 replicas")
	eventually(t, "it is named as well", func() bool { return sinceWhen.MatchString(row(p.text(), one)) })
	one.Set(t, peer.Well)
	p.waitFor(t, "100 of 200 replicas")
	p.keys(t, "q")
	if code := p.exit(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	eventually(t, "all connections are closed", func() bool { return c.Open() == 0 })
}
