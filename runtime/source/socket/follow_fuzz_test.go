package socket

import (
	"bytes"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/wire"
	"github.com/llmtop/llmtop/runtime/engine"
)

// sane is a sink that refuses events with times or durations that overflowed.
type sane struct {
	t    *testing.T
	most event.Time // largest distance of a stamp from 0
}

// Emit implements event.Sink.
func (s sane) Emit(e event.Event) {
	if e.At > s.most || e.At < -s.most || !event.PlausibleCount(e.Dur) {
		s.t.Fatalf("an event at %d of %d ns: %+v", e.At, e.Dur, e)
	}
	if kv, ok := e.Data.(*event.KV); ok && (kv.Pinned > s.most || kv.Pinned < -s.most) {
		s.t.Fatalf("cells are pinned since %d", kv.Pinned)
	}
}

// FuzzFollow: no engine clock makes stamps on the client's clock overflow.
func FuzzFollow(f *testing.F) {
	f.Add([]byte(`{"t":"hello","v":"1.0","a":-4000000000000000000,"name":"x"}
{"t":"sync"}
{"t":"req","a":4000000000000000000,"r":1,"state":"queued"}
{"t":"tok","a":4000000000000000000,"r":1,"i":2147483647,"n":2147483647}
{"t":"tok","a":-4000000000000000000,"r":1}
{"t":"synced"}
{"t":"kv","a":4000000000000000000,"used":1,"total":2,"pinned":4000000000000000000}
{"t":"clock","a":4000000000000000000,"wall":1,"q":1000000000000000000}
{"t":"clock","a":-4000000000000000000}
{"t":"step","a":[4000000000000000000,-8000000000000000000],"dur":1000000000000000000,"s":[1,1]}
{"t":"lost","a":1,"by":{"token":1000000000000000000,"log":1000000000000000000}}
{"t":"hello","v":"1.0","a":4000000000000000000,"name":"x","run":"2"}
{"t":"tok","a":9223372036854775807,"r":18446744073709551615}`))
	f.Add([]byte("{\"t\":\"hello\",\"v\":\"1.0\",\"a\":1,\"name\":\"x\"}\n{\"t\":\"host\",\"a\":1,\"net_in\":1.7e308}\n{\"t\":\"stage\",\"a\":1,\"stage\":\"queue\",\"dur\":1e18}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		// Two stamps of the engine, and the client's clock, which has just started.
		client := follow{clock: engine.NewClock(), sink: sane{t, 2*event.MaxTime + event.MaxNumber}}
		client.begin()
		for line := range bytes.SplitSeq(text, []byte{'\n'}) {
			was := client.remote.Malformed
			var d wire.Decoder
			_, bad := d.Decode(line, func(event.Event) {})
			if _, err := client.line(line); err == nil && bad != nil && client.remote.Malformed != was+1 {
				t.Fatalf("%s is not counted as malformed", line)
			}
		}
		client.release()
	})
}
