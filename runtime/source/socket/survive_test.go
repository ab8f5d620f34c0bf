package socket

import (
	"bytes"
	"fmt"
	"math"
	"net"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/profiler/event/wire"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/runtime/engine"
)

// TestLongLinesTakeLittleMemory: while lines of 100 MB arrive, a client allocates little more than the longest line it
// accepts.
func TestLongLinesTakeLittleMemory(t *testing.T) {
	f := newFake(t)
	var got log
	attach(t, f.address(), "", &got)
	f.greet("one")
	f.logged(&got, "before")
	var filler [][]byte
	for _, text := range []string{"x", "\x00\xff\x1b", "[", `{"a":`} {
		filler = append(filler, bytes.Repeat([]byte(text), 1<<20/len(text)))
	}
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	for _, text := range filler {
		for sent := 0; sent < 100<<20; sent += len(text) {
			if _, err := f.conn.Write(text); err != nil {
				t.Fatal(err)
			}
		}
		f.send("")
	}
	f.logged(&got, "after")
	goruntime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 4*wire.MaxLine {
		t.Errorf("%d MB were allocated for %d lines of 100 MB", took>>20, len(filler))
	}
	f.send(`{"t":"clock","a":2000,"q":2}`)
	eventtest.Wait(t, "the count", func() bool { return got.remote().Malformed == uint64(len(filler)) })
	if r := got.remote(); r.Link != event.LinkConnected || r.Missed != 0 {
		t.Errorf("connection %+v", r)
	}
}

// TestUnknownLines: types, keys and values of a later minor version are ignored and do not count as malformed.
func TestUnknownLines(t *testing.T) {
	f := newFake(t)
	var got log
	c := attach(t, f.address(), "", &got)
	f.hangUp()
	f.conn, _ = f.listener.Accept()
	f.send(`{"t":"hello","v":"1.7","name":"fake","a":1,"caps":["tokens","telepathy"],"mood":{"is":["good",1]},"model":{"name":"m","soul":null}}`)
	f.send(`{"t":"dream","a":5,"of":[{"sheep":true}]}`)
	f.send(`{"t":"req","a":5,"r":1,"state":"queued","colour":"red"}`)
	f.send(`{"t":"req","a":5,"r":1,"state":"sleeping"}`)
	f.send(`{"t":"tok","a":[6,1],"r":1,"i":[0,1],"taste":["sweet",null],"z":[[[]]]}`)
	f.send(`{"t":"lost","a":7,"by":{"dream":2,"token":1},"q":6}`)
	f.logged(&got, "end")
	f.send(`{"t":"clock","a":8,"q":7}`)
	f.logged(&got, "over")
	if n := len(got.OfKind(event.KindToken)); n != 2 {
		t.Errorf("%d tokens of 2", n)
	}
	if lost := got.OfKind(event.KindDrops)[0].Data.(*event.Drops); lost.Total() != 3 {
		t.Errorf("dropped %v of 3, two of an unknown kind", lost)
	}
	if r := got.remote(); r.Malformed != 0 || r.Missed != 0 || c.Offers() != event.CapTokens {
		t.Errorf("connection %+v, offers %b", r, c.Offers())
	}
}

// TestLargeRequestIDs: after a run with the largest ids, new ids are neither 0 nor those of the run before.
func TestLargeRequestIDs(t *testing.T) {
	f := newFake(t)
	var got log
	attach(t, f.address(), "", &got)
	for run := range 4 {
		f.greet(fmt.Sprint(run))
		f.send(`{"t":"req","a":1,"r":%d,"state":"queued"}`, uint64(math.MaxUint64))
		f.send(`{"t":"req","a":1,"r":%d,"state":"queued"}`, maxID)
		f.send(`{"t":"req","a":1,"r":1,"state":"queued"}`)
		f.logged(&got, fmt.Sprint(run))
		f.hangUp()
	}
	for i, e := range got.OfKind(event.KindRequest) {
		if e.Req == 0 {
			t.Errorf("event %d is about request 0: %+v", i, e)
		}
	}
}

// TestBackoff: an engine that closes its connections is tried again after 100 ms, then after twice as long each time, up to
// 200 ms at a Unix socket, and up to 5 s over TCP, where a tunnel may lead to another machine.
func TestBackoff(t *testing.T) {
	type attempts struct {
		span time.Duration
		n    int64
	}
	for network, want := range map[string][]attempts{
		"unix": {{50 * time.Millisecond, 1}, {100 * time.Millisecond, 2}, {200 * time.Millisecond, 3}, {time.Second, 8}, {time.Minute, 308}},
		"tcp":  {{50 * time.Millisecond, 1}, {100 * time.Millisecond, 2}, {200 * time.Millisecond, 3}, {6 * time.Second, 7}, {5 * time.Second, 8}, {time.Minute, 20}},
	} {
		t.Run(network, func(t *testing.T) {
			at := "127.0.0.1:0"
			if network == "unix" {
				at = filepath.Join(t.TempDir(), "s.sock")
			}
			l, err := net.Listen(network, at)
			if err != nil {
				t.Fatal(err)
			}
			var asked atomic.Int64
			ended := make(chan struct{})
			go func() { // outside of the bubble: this takes no time in it
				defer close(ended)
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					asked.Add(1)
					_ = conn.Close()
				}
			}()
			synctest.Test(t, func(t *testing.T) {
				var got log
				attach(t, network+":"+l.Addr().String(), "", &got)
				for _, until := range want {
					time.Sleep(until.span)
					synctest.Wait()
					if n := asked.Load(); n != until.n {
						t.Errorf("after %v there were %d attempts, want %d", until.span, n, until.n)
					}
				}
			})
			_ = l.Close()
			<-ended
		})
	}
}

// TestShapesThatChange: the numbers of layers and experts and the model may change during a run, up to the numbers on
// the screen.
func TestShapesThatChange(t *testing.T) {
	f := newFake(t)
	c, err := Dial(f.address(), "", engine.NewClock())
	if err != nil {
		t.Fatal(err)
	}
	s := store.New(store.Options{Now: c.follow.clock.Now})
	var got log
	watch(t, c, event.Tee{s, &got})
	f.greet("one")
	f.send(`{"t":"model","a":1,"name":"one","layers":2,"experts":2,"experts_used":1}`)
	f.send(`{"t":"experts","a":2,"layers":2,"experts":2,"used":1,"d":[1,2,3,4],"dt":5}`)
	f.send(`{"t":"experts","a":3,"layers":1,"experts":3,"used":1,"d":[7,8,9],"dt":6}`)
	f.send(`{"t":"tok","a":4,"r":1,"e":[65535,0,1]}`)
	f.send(`{"t":"model","a":5,"name":"two","layers":1,"experts":4,"experts_used":2}`)
	f.send(`{"t":"experts","a":6,"layers":1,"experts":4,"used":2,"d":[1,1,1,1],"p":[0,0,0,0],"dt":2}`)
	f.send(`{"t":"experts","a":7,"layers":1,"experts":4,"used":2,"d":[2,1,1,4],"p":[0,0,0,0],"dt":4}`)
	f.send(`{"t":"experts","a":8,"layers":2,"experts":4,"used":2,"d":[2,1,1,4]}`)
	f.logged(&got, "end")
	v := s.Snapshot()
	if v.Model.Name != "two" || v.Experts == nil || v.Experts.Layers != 1 || v.Experts.Experts != 4 {
		t.Fatalf("model %q, experts %+v", v.Model.Name, v.Experts)
	}
	if h := v.Experts.Hits(metric.Session, metric.Decode); h.Counts[3] != 3 && h.Counts[3] != 4 {
		t.Errorf("picks %v of the last shape", h.Counts)
	}
}

// TestRequestsWithoutNumber: tokens without an index are counted, up to the limit of tracked requests.
func TestRequestsWithoutNumber(t *testing.T) {
	f := newFake(t)
	var got log
	c := attach(t, f.address(), "", &got)
	f.greet("one")
	f.send(`{"t":"tok","a":1,"r":1}`)
	f.send(`{"t":"tok","a":2,"r":1,"n":4}`)
	f.send(`{"t":"tok","a":3,"r":1}`)
	f.send(`{"t":"req","a":3,"r":1,"state":"queued"}`)
	f.send(`{"t":"req","a":3,"r":1,"state":"queued"}`)
	f.send(`{"t":"req","a":3,"r":99,"state":"finished"}`)
	for i := range 2 * maxKnown / 1000 {
		var ids strings.Builder
		for k := range 1000 {
			fmt.Fprintf(&ids, ",%d", 1000+1000*i+k)
		}
		f.send(`{"t":"tok","a":[%s],"r":[%s]}`, strings.Repeat("1,", 999)+"1", ids.String()[1:])
	}
	f.logged(&got, "done")
	for i, e := range got.OfKind(event.KindToken)[:3] {
		if want := []int32{0, 1, 5}[i]; e.Index != want {
			t.Errorf("token %d has index %d", want, e.Index)
		}
	}
	if n := len(c.follow.live); n != maxKnown {
		t.Errorf("%d requests are remembered", n)
	}
}
