package socket

import (
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/runtime/engine"
)

// fake is an engine that sends what a test wants, over one connection after the other.
type fake struct {
	t        testing.TB
	listener net.Listener
	conn     net.Conn
}

func newFake(t testing.TB) *fake {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s.sock"))
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{t: t, listener: l}
	t.Cleanup(func() {
		_ = l.Close()
		f.hangUp()
	})
	return f
}

func (f *fake) address() string { return "unix:" + f.listener.Addr().String() }

// greet accepts the next connection and introduces the engine.
func (f *fake) greet(run string) {
	f.t.Helper()
	f.hangUp()
	var err error
	if f.conn, err = f.listener.Accept(); err != nil {
		f.t.Fatal(err)
	}
	f.send(`{"t":"hello","v":"1.0","name":"fake","pid":42,"run":"%s","a":1000,"wall":1787400001000000000,"caps":["tokens"]}`, run)
}

// send writes a line.
func (f *fake) send(format string, args ...any) {
	f.t.Helper()
	if _, err := fmt.Fprintf(f.conn, format+"\n", args...); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fake) hangUp() {
	if f.conn != nil {
		_ = f.conn.Close()
	}
}

// logged waits until a log line has arrived, and with it everything sent before.
func (f *fake) logged(got *log, text string) {
	f.t.Helper()
	f.send(`{"t":"log","a":1,"m":"%s"}`, text)
	eventtest.Wait(f.t, "the log line "+text, func() bool {
		all := got.OfKind(event.KindLog)
		return len(all) > 0 && all[len(all)-1].Text == text
	})
}

// TestRestart: when the engine restarts at the same address, the old run's requests end, and new ones get new numbers.
func TestRestart(t *testing.T) {
	f := newFake(t)
	var got log
	attach(t, f.address(), "", &got)
	f.greet("one")
	f.send(`{"t":"sync"}`)
	f.send(`{"t":"synced"}`)
	f.send(`{"t":"req","a":1001,"r":5,"state":"queued"}`)
	f.send(`{"t":"tok","a":1002,"r":5,"i":0}`)
	f.send(`{"t":"lost","a":1003,"by":{"stage":3},"q":5}`)
	f.logged(&got, "one")
	f.hangUp()
	eventtest.Wait(t, "the disconnection", func() bool { return got.remote().Link == event.LinkDisconnected })
	f.greet("two")
	f.send(`{"t":"req","a":1001,"r":1,"state":"queued"}`)
	f.send(`{"t":"lost","a":1003,"by":{"stage":1},"q":2}`)
	f.logged(&got, "two")
	r := got.remote()
	if r.Link != event.LinkConnected || r.Restarts != 1 || r.Missed != 0 || r.Reason != "" {
		t.Errorf("connection %+v", r)
	}
	requests := got.OfKind(event.KindRequest)
	if len(requests) != 3 || requests[1].Req != 5 || requests[1].State != event.StateCancelled || requests[2].Req != 6 {
		t.Errorf("requests %+v", requests)
	}
	losses := got.OfKind(event.KindDrops)
	if last := *losses[len(losses)-1].Data.(*event.Drops); last != (event.Drops{event.KindStage: 4}) {
		t.Errorf("dropped %v over both runs", last)
	}
}

// TestKilled: requests of an engine at whose address nobody listens any more end; if the same run answers again, what still
// runs there begins again, under new numbers.
func TestKilled(t *testing.T) {
	f := newFake(t)
	var got log
	attach(t, f.address(), "", &got)
	f.greet("one")
	f.send(`{"t":"sync"}`)
	f.send(`{"t":"synced"}`)
	f.send(`{"t":"req","a":1001,"r":5,"state":"queued"}`)
	f.send(`{"t":"tok","a":1002,"r":5,"i":0}`)
	f.logged(&got, "one")
	at := f.listener.Addr().String()
	_ = f.listener.Close()
	f.hangUp()
	eventtest.Wait(t, "the end of the request", func() bool { return len(got.OfKind(event.KindRequest)) == 2 })
	if end := got.OfKind(event.KindRequest)[1]; end.Req != 5 || end.State != event.StateCancelled || end.Data.(*event.Outcome).Reason != "the engine has ended" {
		t.Errorf("%+v", end)
	}
	var err error
	if f.listener, err = net.Listen("unix", at); err != nil {
		t.Fatal(err)
	}
	defer f.listener.Close()
	f.greet("one")
	f.send(`{"t":"sync"}`)
	f.send(`{"t":"req","a":1001,"r":5,"state":"queued"}`)
	f.send(`{"t":"tok","a":1002,"r":5,"i":0,"n":3}`)
	f.send(`{"t":"synced"}`)
	f.logged(&got, "again")
	if all := got.OfKind(event.KindRequest); len(all) != 3 || all[2].Req != 10 || all[2].State != event.StateQueued || got.remote().Restarts != 0 {
		t.Errorf("%+v, %+v", all, got.remote())
	}
}

// TestReconnection: a state repeated after a reconnection is not counted twice, and requests that ended meanwhile are
// ended.
func TestReconnection(t *testing.T) {
	f := newFake(t)
	var got log
	attach(t, f.address(), "", &got)
	f.greet("one")
	f.send(`{"t":"model","a":900,"dur":5,"name":"m"}`)
	f.send(`{"t":"sync"}`)
	f.send(`{"t":"req","a":1001,"r":5,"state":"queued"}`)
	f.send(`{"t":"req","a":1001,"r":6,"state":"queued"}`)
	f.send(`{"t":"stage","a":1002,"r":5,"stage":"queue","dur":1}`)
	f.send(`{"t":"synced"}`)
	f.send(`{"t":"tok","a":[1002,1,1],"r":5,"i":[0,1,1]}`)
	f.logged(&got, "before")
	f.hangUp()
	f.greet("one")
	f.send(`{"t":"sync"}`)
	f.send(`{"t":"model","a":900,"dur":5,"name":"m"}`)
	f.send(`{"t":"req","a":1001,"r":5,"state":"queued"}`)
	f.send(`{"t":"req","a":1009,"r":7,"state":"queued"}`)
	f.send(`{"t":"stage","a":1002,"r":5,"stage":"queue","dur":1}`)
	f.send(`{"t":"stage","a":1010,"r":7,"stage":"queue","dur":1}`)
	f.send(`{"t":"tok","a":1002,"r":5,"i":0,"d":9}`)
	f.send(`{"t":"tok","a":1100,"r":5,"i":1,"n":9}`)
	f.send(`{"t":"tok","a":1100,"r":7,"i":0}`)
	f.send(`{"t":"synced"}`)
	f.send(`{"t":"tok","a":1110,"r":5,"i":10}`)
	f.logged(&got, "after")
	if r := got.remote(); r.Restarts != 0 || r.Link != event.LinkConnected {
		t.Errorf("connection %+v", r)
	}
	index := int32(0)
	for _, e := range got.OfKind(event.KindToken) {
		if e.Req == 5 {
			if e.Index != index {
				t.Errorf("token %d comes after %d", e.Index, index-1)
			}
			index += e.N
		}
	}
	if index != 11 {
		t.Errorf("%d tokens of 11", index)
	}
	if n := len(got.OfKind(event.KindStage)); n != 2 {
		t.Errorf("%d stages, want one for each request", n)
	}
	if n := len(got.OfKind(event.KindModel)); n != 1 {
		t.Errorf("%d models, want one", n)
	}
	ended := 0
	for _, e := range got.OfKind(event.KindRequest) {
		if e.State.Final() {
			ended++
			if e.Req != 6 {
				t.Errorf("request %d has ended", e.Req)
			}
		}
	}
	if ended != 1 {
		t.Errorf("%d requests have ended", ended)
	}
}

// TestStale: a silent engine is stale until it sends again.
func TestStale(t *testing.T) {
	f := newFake(t)
	c, err := Dial(f.address(), "", engine.NewClock())
	if err != nil {
		t.Fatal(err)
	}
	c.silence = 30 * time.Millisecond
	var got log
	done := make(chan error)
	go func() { done <- c.Run(t.Context(), &got) }()
	t.Cleanup(func() { <-done })
	f.greet("one")
	_, _ = f.conn.Write([]byte(`{"t":"tok","a":10`)) // stopped in the middle of a line
	eventtest.Wait(t, "staleness", func() bool { return got.remote().Link == event.LinkStale })
	if r := got.remote(); r.Since == 0 {
		t.Error("stale since the beginning of time")
	}
	f.send(`02,"r":5,"i":0}`)
	eventtest.Wait(t, "life", func() bool { return len(got.OfKind(event.KindToken)) == 1 })
	engines := got.OfKind(event.KindEngine)
	if was := engines[len(engines)-1].Data.(*event.EngineInfo).Remote.Link; was != event.LinkConnected && was != event.LinkStale {
		t.Errorf("the connection is %v", was)
	}
}

// TestHostileEngine: malformed lines of any length are counted and skipped; valid lines between them are used.
func TestHostileEngine(t *testing.T) {
	f := newFake(t)
	var got log
	attach(t, f.address(), "", &got)
	f.greet("one")
	for i, bad := range []string{
		"\x00\x01\xff", "{", `{"t":"tok"}`, strings.Repeat("[", 1000), "GET / HTTP/1.1\r", `{"t":"tok","a":1,"r":1,"i":0`, `{"t":"kv","a":1,"used":-1,"total":2}`,
	} {
		f.send("%s", bad)
		f.send(`{"t":"tok","a":%d,"r":1,"i":%d}`, 1001+i, i)
	}
	f.logged(&got, "small")
	long := strings.Repeat("x", 1<<20)
	for range 100 { // a line of 100 MB
		if _, err := io.WriteString(f.conn, long); err != nil {
			t.Fatal(err)
		}
	}
	f.send("")
	f.send(`{"t":"tok","a":[],"r":[]}`)
	f.send(`{"t":"clock","a":2000,"q":9}`)
	f.logged(&got, "large")
	if n := len(got.OfKind(event.KindToken)); n != 7 {
		t.Errorf("%d tokens of 7", n)
	}
	eventtest.Wait(t, "the count", func() bool { return got.remote().Missed == 1 })
	f.send(`{"t":"clock","a":2000,"q":11}`)
	eventtest.Wait(t, "the count", func() bool { return got.remote().Missed == 2 })
	if r := got.remote(); r.Malformed != 9 {
		t.Errorf("%d malformed lines, want 9", r.Malformed)
	}
}

// TestMalformedLinesOfAnEngineThatCountsNothing: its malformed lines are reported with the next heartbeat.
func TestMalformedLinesOfAnEngineThatCountsNothing(t *testing.T) {
	f := newFake(t)
	var got log
	attach(t, f.address(), "", &got)
	f.greet("one")
	f.send(`{"t":"tok"}`)
	f.send(`{"t":"clock","a":2000}`)
	eventtest.Wait(t, "the count", func() bool { // not with the end of the connection, or when it is stale
		return slices.ContainsFunc(got.OfKind(event.KindEngine), func(e event.Event) bool {
			r := e.Data.(*event.EngineInfo).Remote
			return r.Link == event.LinkConnected && r.Malformed == 1 && r.Missed == 0
		})
	})
}

// TestEngineThatDies: half a line does not count, and the client reconnects.
func TestEngineThatDies(t *testing.T) {
	f := newFake(t)
	var got log
	attach(t, f.address(), "", &got)
	f.greet("one")
	f.logged(&got, "alive")
	_, _ = f.conn.Write([]byte(`{"t":"tok","a":5,"r":1,"i":0}`)) // no line end
	f.hangUp()
	eventtest.Wait(t, "the disconnection", func() bool { return got.remote().Link == event.LinkDisconnected })
	if n := len(got.OfKind(event.KindToken)); n != 0 {
		t.Errorf("%d tokens of a line without an end", n)
	}
	if why := got.remote().Reason; why == "" {
		t.Error("no reason for the disconnection")
	}
	f.greet("one")
	f.logged(&got, "again")
}

// TestClockThatJumps: stamps stay close to the client's clock whatever the engine's clock does, and the log reports the
// jump.
func TestClockThatJumps(t *testing.T) {
	for name, c := range map[string]struct {
		by    int64
		beats int // heartbeats until the jump is detected
	}{"forwards": {3600e9, 1}, "backwards": {-3600e9, minLateBeats}} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			var got log
			client, err := Dial(f.address(), "", engine.NewClock())
			if err != nil {
				t.Fatal(err)
			}
			client.follow.settles = 0
			watch(t, client, &got)
			f.greet("one")
			f.logged(&got, "tied")
			for range c.beats {
				f.send(`{"t":"clock","a":%d}`, 1000+c.by)
			}
			f.send(`{"t":"tok","a":%d,"r":1,"i":0}`, 1000+c.by)
			f.send(`{"t":"tok","a":%d,"r":1,"i":1}`, 500+c.by) // time runs backwards
			f.send(`{"t":"tok","a":4000000000000000000,"r":1,"i":2}`)
			eventtest.Wait(t, "tokens", func() bool { return len(got.OfKind(event.KindToken)) == 3 })
			if at, now := got.OfKind(event.KindToken)[0].At, client.follow.clock.Now(); at < now-event.Time(time.Minute) || at > now {
				t.Errorf("a token of just now is stamped %v, now is %v", at, now)
			}
			for _, e := range got.OfKind(event.KindToken) {
				if now := client.follow.clock.Now(); e.At > now {
					t.Errorf("a token is stamped %v, in the future of %v", e.At, now)
				}
			}
			if all := got.OfKind(event.KindLog); !strings.Contains(all[len(all)-1].Text, "clock jumped") {
				t.Errorf("logged %q", all[len(all)-1].Text)
			}
		})
	}
}

// TestLateHeartbeats: the heartbeats of a slow or stopped client are late, but not a clock jump.
func TestLateHeartbeats(t *testing.T) {
	f := newFake(t)
	var got log
	client := attach(t, f.address(), "", &got)
	f.greet("one")
	f.logged(&got, "tied")
	now := int64(client.follow.clock.Now() - client.follow.offset)
	for late := 10; late >= 0; late-- {
		f.send(`{"t":"clock","a":%d}`, now-int64(late)*1e9)
		f.send(`{"t":"tok","a":%d,"r":1}`, now-int64(late)*1e9)
	}
	f.logged(&got, "done")
	for _, e := range got.OfKind(event.KindLog) {
		if strings.Contains(e.Text, "jumped") {
			t.Error(e.Text)
		}
	}
	tokens := got.OfKind(event.KindToken)
	for i, e := range tokens {
		if i > 0 && e.At-tokens[i-1].At != 1e9 {
			t.Errorf("a second between two tokens has become %v", time.Duration(e.At-tokens[i-1].At))
		}
	}
}

// TestNewerEngine: a client refuses a newer protocol for good.
func TestNewerEngine(t *testing.T) {
	f := newFake(t)
	c, err := Dial(f.address(), "", engine.NewClock())
	if err != nil {
		t.Fatal(err)
	}
	var got log
	done := make(chan error)
	go func() { done <- c.Run(t.Context(), &got) }()
	f.conn, _ = f.listener.Accept()
	f.send(`{"t":"tok","a":1,"r":1}`) // before the introduction
	f.send(`{"t":"hello","v":"2.0","name":"new","a":1}`)
	if err := <-done; !errors.Is(err, ErrVersion) {
		t.Errorf("the end is %v", err)
	}
	if r := got.remote(); r.Link != event.LinkRefused || !strings.Contains(r.Reason, "newer version") {
		t.Errorf("connection %+v", r)
	}
	if n := len(got.OfKind(event.KindToken)); n != 0 {
		t.Errorf("%d tokens of a stranger", n)
	}
}
