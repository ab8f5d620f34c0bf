package socket

import (
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime"
)

// fake is an engine that says what a test wants, over one connection after the other.
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

// greet takes the next connection.
func (f *fake) greet(run string) {
	f.t.Helper()
	f.hangUp()
	var err error
	if f.conn, err = f.listener.Accept(); err != nil {
		f.t.Fatal(err)
	}
	f.say(`{"t":"hello","v":"1.0","name":"fake","pid":42,"run":"%s","a":1000,"wall":1787400001000000000,"caps":["tokens"]}`, run)
}

// say writes lines.
func (f *fake) say(format string, args ...any) {
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

// logged waits until a line of the log has come, and with it all that was said before.
func (f *fake) logged(got *log, text string) {
	f.t.Helper()
	f.say(`{"t":"log","a":1,"m":"%s"}`, text)
	await(f.t, "the log line "+text, func() bool {
		all := got.Of(event.KindLog)
		return len(all) > 0 && all[len(all)-1].Text == text
	})
}

// TestRestart: another run of the engine at the same address ends what the run before has left, and its requests get new numbers.
func TestRestart(t *testing.T) {
	f := newFake(t)
	var got log
	attach(t, f.address(), "", &got)
	f.greet("one")
	f.say(`{"t":"sync"}`)
	f.say(`{"t":"synced"}`)
	f.say(`{"t":"req","a":1001,"r":5,"state":"queued"}`)
	f.say(`{"t":"tok","a":1002,"r":5,"i":0}`)
	f.say(`{"t":"lost","a":1003,"by":{"stage":3},"q":5}`)
	f.logged(&got, "one")
	f.hangUp()
	await(t, "the disconnection", func() bool { return got.remote().Link == event.LinkDisconnected })
	f.greet("two")
	f.say(`{"t":"req","a":1001,"r":1,"state":"queued"}`)
	f.say(`{"t":"lost","a":1003,"by":{"stage":1},"q":2}`)
	f.logged(&got, "two")
	r := got.remote()
	if r.Link != event.LinkConnected || r.Restarts != 1 || r.Missing != 0 || r.Why != "" {
		t.Errorf("connection %+v", r)
	}
	requests := got.Of(event.KindRequest)
	if len(requests) != 3 || requests[1].Req != 5 || requests[1].State != event.StateCancelled || requests[2].Req != 6 {
		t.Errorf("requests %+v", requests)
	}
	losses := got.Of(event.KindLost)
	if last := *losses[len(losses)-1].Data.(*event.Lost); last != (event.Lost{event.KindStage: 4}) {
		t.Errorf("lost %v over both runs", last)
	}
}

// TestReconnection: what the engine tells of its state again is not counted again, and what has ended meanwhile is ended.
func TestReconnection(t *testing.T) {
	f := newFake(t)
	var got log
	attach(t, f.address(), "", &got)
	f.greet("one")
	f.say(`{"t":"model","a":900,"dur":5,"name":"m"}`)
	f.say(`{"t":"sync"}`)
	f.say(`{"t":"req","a":1001,"r":5,"state":"queued"}`)
	f.say(`{"t":"req","a":1001,"r":6,"state":"queued"}`)
	f.say(`{"t":"stage","a":1002,"r":5,"stage":"queue","dur":1}`)
	f.say(`{"t":"synced"}`)
	f.say(`{"t":"tok","a":[1002,1,1],"r":5,"i":[0,1,1]}`)
	f.logged(&got, "before")
	f.hangUp()
	f.greet("one")
	f.say(`{"t":"sync"}`)
	f.say(`{"t":"model","a":900,"dur":5,"name":"m"}`)
	f.say(`{"t":"req","a":1001,"r":5,"state":"queued"}`)
	f.say(`{"t":"req","a":1009,"r":7,"state":"queued"}`)
	f.say(`{"t":"stage","a":1002,"r":5,"stage":"queue","dur":1}`)
	f.say(`{"t":"stage","a":1010,"r":7,"stage":"queue","dur":1}`)
	f.say(`{"t":"tok","a":1002,"r":5,"i":0,"d":9}`)
	f.say(`{"t":"tok","a":1100,"r":5,"i":1,"n":9}`)
	f.say(`{"t":"tok","a":1100,"r":7,"i":0}`)
	f.say(`{"t":"synced"}`)
	f.say(`{"t":"tok","a":1110,"r":5,"i":10}`)
	f.logged(&got, "after")
	if r := got.remote(); r.Restarts != 0 || r.Link != event.LinkConnected {
		t.Errorf("connection %+v", r)
	}
	index := int32(0)
	for _, e := range got.Of(event.KindToken) {
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
	if n := len(got.Of(event.KindStage)); n != 2 {
		t.Errorf("%d stages, want one for each request", n)
	}
	if n := len(got.Of(event.KindModel)); n != 1 {
		t.Errorf("%d models, want one", n)
	}
	ended := 0
	for _, e := range got.Of(event.KindRequest) {
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

// TestStale: an engine that has not said anything for too long is stale until it speaks.
func TestStale(t *testing.T) {
	f := newFake(t)
	c, err := Dial(f.address(), "", runtime.NewClock())
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
	await(t, "staleness", func() bool { return got.remote().Link == event.LinkStale })
	if r := got.remote(); r.Since == 0 {
		t.Error("stale since the beginning of time")
	}
	f.say(`02,"r":5,"i":0}`)
	await(t, "life", func() bool { return len(got.Of(event.KindToken)) == 1 })
	engines := got.Of(event.KindEngine)
	if was := engines[len(engines)-1].Data.(*event.Engine).Remote.Link; was != event.LinkConnected && was != event.LinkStale {
		t.Errorf("the connection is %v", was)
	}
}

// TestHostileEngine: lines that make no sense, of any length, are counted and passed over; what is good between them is used.
func TestHostileEngine(t *testing.T) {
	f := newFake(t)
	var got log
	attach(t, f.address(), "", &got)
	f.greet("one")
	for i, bad := range []string{
		"\x00\x01\xff", "{", `{"t":"tok"}`, strings.Repeat("[", 1000), "GET / HTTP/1.1\r", `{"t":"tok","a":1,"r":1,"i":0`, `{"t":"kv","a":1,"used":-1,"total":2}`,
	} {
		f.say("%s", bad)
		f.say(`{"t":"tok","a":%d,"r":1,"i":%d}`, 1001+i, i)
	}
	f.logged(&got, "small")
	long := strings.Repeat("x", 1<<20)
	for range 100 { // a line of 100 MB
		if _, err := io.WriteString(f.conn, long); err != nil {
			t.Fatal(err)
		}
	}
	f.say("")
	f.say(`{"t":"tok","a":[],"r":[]}`)
	f.say(`{"t":"clock","a":2000,"q":9}`)
	f.logged(&got, "large")
	if n := len(got.Of(event.KindToken)); n != 7 {
		t.Errorf("%d tokens of 7", n)
	}
	await(t, "the count", func() bool { return got.remote().Missing == 1 })
	f.say(`{"t":"clock","a":2000,"q":11}`)
	await(t, "the count", func() bool { return got.remote().Missing == 2 })
	if r := got.remote(); r.Garbage != 9 {
		t.Errorf("%d lines are garbage, want 9", r.Garbage)
	}
}

// TestEngineThatDies in the middle of a line: that line does not count, and the client tries again.
func TestEngineThatDies(t *testing.T) {
	f := newFake(t)
	var got log
	attach(t, f.address(), "", &got)
	f.greet("one")
	f.logged(&got, "alive")
	_, _ = f.conn.Write([]byte(`{"t":"tok","a":5,"r":1,"i":0}`)) // no line end
	f.hangUp()
	await(t, "the disconnection", func() bool { return got.remote().Link == event.LinkDisconnected })
	if n := len(got.Of(event.KindToken)); n != 0 {
		t.Errorf("%d tokens of a line without an end", n)
	}
	if why := got.remote().Why; why == "" {
		t.Error("no reason for the disconnection")
	}
	f.greet("one")
	f.logged(&got, "again")
}

// TestClockThatJumps: times stay near the client's whatever the engine's clock does, and the log tells of it.
func TestClockThatJumps(t *testing.T) {
	for name, c := range map[string]struct {
		by    int64
		beats int // until it is believed
	}{"forwards": {3600e9, 1}, "backwards": {-3600e9, ties}} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			var got log
			client, err := Dial(f.address(), "", runtime.NewClock())
			if err != nil {
				t.Fatal(err)
			}
			client.follow.settles = 0
			watch(t, client, &got)
			f.greet("one")
			f.logged(&got, "tied")
			for range c.beats {
				f.say(`{"t":"clock","a":%d}`, 1000+c.by)
			}
			f.say(`{"t":"tok","a":%d,"r":1,"i":0}`, 1000+c.by)
			f.say(`{"t":"tok","a":%d,"r":1,"i":1}`, 500+c.by) // time runs backwards
			f.say(`{"t":"tok","a":9223372036854775807,"r":1,"i":2}`)
			await(t, "tokens", func() bool { return len(got.Of(event.KindToken)) == 3 })
			if at, now := got.Of(event.KindToken)[0].At, client.clock.Now(); at < now-event.Time(time.Minute) || at > now {
				t.Errorf("a token of just now is stamped %v, now is %v", at, now)
			}
			if all := got.Of(event.KindLog); !strings.Contains(all[len(all)-1].Text, "clock has jumped") {
				t.Errorf("the log says %q", all[len(all)-1].Text)
			}
		})
	}
}

// TestLateHeartbeats of a client that does not keep up, or was stopped and reads what has come meanwhile, are not taken for a jump.
func TestLateHeartbeats(t *testing.T) {
	f := newFake(t)
	var got log
	client := attach(t, f.address(), "", &got)
	f.greet("one")
	f.logged(&got, "tied")
	now := int64(client.clock.Now() - client.follow.offset)
	for late := 10; late >= 0; late-- {
		f.say(`{"t":"clock","a":%d}`, now-int64(late)*1e9)
		f.say(`{"t":"tok","a":%d,"r":1}`, now-int64(late)*1e9)
	}
	f.logged(&got, "done")
	for _, e := range got.Of(event.KindLog) {
		if strings.Contains(e.Text, "jumped") {
			t.Error(e.Text)
		}
	}
	tokens := got.Of(event.KindToken)
	for i, e := range tokens {
		if i > 0 && e.At-tokens[i-1].At != 1e9 {
			t.Errorf("a second between two tokens has become %v", time.Duration(e.At-tokens[i-1].At))
		}
	}
}

// TestNewerEngine is refused for good.
func TestNewerEngine(t *testing.T) {
	f := newFake(t)
	c, err := Dial(f.address(), "", runtime.NewClock())
	if err != nil {
		t.Fatal(err)
	}
	var got log
	done := make(chan error)
	go func() { done <- c.Run(t.Context(), &got) }()
	f.conn, _ = f.listener.Accept()
	f.say(`{"t":"tok","a":1,"r":1}`) // before anybody has introduced himself
	f.say(`{"t":"hello","v":"2.0","name":"new","a":1}`)
	if err := <-done; !errors.Is(err, ErrVersion) {
		t.Errorf("the end is %v", err)
	}
	if r := got.remote(); r.Link != event.LinkRefused || !strings.Contains(r.Why, "newer version") {
		t.Errorf("connection %+v", r)
	}
	if n := len(got.Of(event.KindToken)); n != 0 {
		t.Errorf("%d tokens of a stranger", n)
	}
}
