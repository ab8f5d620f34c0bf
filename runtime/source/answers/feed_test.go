package answers

import (
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// TestFeed: a feed keeps timestamps with their bytes, never blocks the writer, and reports what it dropped.
func TestFeed(t *testing.T) {
	waiting, written := make(chan struct{}), make(chan struct{})
	waits := 0
	feed := NewFeed(func() {
		if waits++; waits == 1 {
			close(waiting)
		}
	})
	feed.Put([]byte("ab"), 1)
	feed.Put([]byte("c"), 2)
	p := make([]byte, 1)
	for i, want := range []event.Time{1, 1, 2} {
		if n, err := feed.Read(p); n != 1 || err != nil || p[0] != "abc"[i] || feed.At() != want {
			t.Fatalf("byte %d: %q, %v at %d, want at %d", i, p, err, feed.At(), want)
		}
	}
	go func() {
		defer close(written)
		<-waiting
		feed.Put([]byte("d"), 3)
		feed.Wake()
	}()
	if n, err := feed.Read(p); n != 1 || err != nil || feed.At() != 3 {
		t.Errorf("%d, %v at %d", n, err, feed.At())
	}
	<-written
	feed.Put(make([]byte, maxWaiting), 4)
	feed.Put([]byte("e"), 5)
	feed.Close()
	if n, err := feed.Read(p); n != 0 || err != ErrBehind {
		t.Errorf("%d, %v; want ErrBehind", n, err)
	}
	feed = NewFeed(func() {})
	feed.Leave()
	feed.Put([]byte("x"), 1)
	feed.Close()
	if len(feed.waiting) > 0 {
		t.Error("a feed without a reader holds data")
	}
}
