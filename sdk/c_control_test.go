package sdk

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/profiler/store"
)

// asker is a connection that sends control messages.
type asker struct {
	t     *testing.T
	conn  net.Conn
	lines *bufio.Scanner
}

func ask(t *testing.T, address string) asker {
	t.Helper()
	network, at, _ := strings.Cut(address, ":")
	conn, err := net.Dial(network, at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(eventtest.Patience))
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, 4<<20)
	return asker{t, conn, lines}
}

func (a asker) send(line string) {
	_, _ = io.WriteString(a.conn, line) // the engine may hang up
}

// until reads up to a line of the given type.
func (a asker) until(kind string) map[string]any {
	a.t.Helper()
	for a.lines.Scan() {
		keys := map[string]any{}
		if err := json.Unmarshal(a.lines.Bytes(), &keys); err != nil {
			a.t.Fatal(err)
		}
		if keys["t"] == kind {
			return keys
		}
	}
	a.t.Fatalf("the connection ended without %s: %v", kind, a.lines.Err())
	return nil
}

// answer sends a message and returns the reply.
func (a asker) answer(line string) string {
	a.t.Helper()
	a.send(line + "\n")
	k := a.until("reply")
	return fmt.Sprint(k["c"], " ", k["ok"], " ", k["why"], " ", k["r"])
}

func controlled(t *testing.T, variables ...string) *Program {
	t.Helper()
	return Start(t, buildC(t, languageC, languageC.source), append([]string{"ADDRESS=unix:" + Socket(t), "CONTROL=1"}, variables...)...)
}

func TestControlOfC(t *testing.T) {
	t.Parallel()
	obeys(t, controlled(t))
}

// obeys sends control messages to an engine, and ends it.
func obeys(t *testing.T, p *Program) {
	t.Helper()
	a := ask(t, p.Address)
	caps, _ := a.until("hello")["caps"].([]any)
	for name, want := range map[string]bool{"generate": true, "cancel": true, "pause": true, "hooks": true, "sample": false, "resume": false} {
		if slices.Contains(caps, any(name)) != want {
			t.Errorf("it offers %v", caps)
		}
	}
	prompt := `{"t":"generate","c":1,"prompt":"say \"it\"\n\u00fc\ud83d\ude00\ud83d\\","group":"g","label":"l","ids":[5,-1,"x",7],"max":64,` +
		`"top_k":4e1,"seed":9223372036854775806,"temperature":0.8,"top_p":9.5E-1,"min_p":5e-2,"repeat_penalty":1.1,"ignore_eos":true,"probe":true,"picks":false,"unknown":[{"a":[]},null]}`
	a.send(prompt + "\n")
	log, reply := a.until("log"), ""
	if want := "generate say \"it\"\nü😀\ufffd\\|g|l|2|7|64|40|9223372036854775806|0.8|0.95|0.05|1.1|1010"; log["m"] != want {
		t.Errorf("asked for %q, want %q", log["m"], want)
	}
	for _, c := range []struct{ line, want string }{
		{`{"t":"generate","c":2,"prompt":"refuse"}`, `2 false no more than "this" <nil>`},
		{`{"t":"generate","c":3,"ids":[]}`, `3 true <nil> 77`},
		{`{"t":"cancel","c":4,"r":77}`, `4 true <nil> <nil>`},
		{`{"t":"cancel","c":5,"r":8}`, `5 false no request 8 <nil>`},
		{`{"t":"pause","c":6}`, `6 true <nil> <nil>`},
		{`{"t":"resume","c":7}`, `7 true <nil> <nil>`},
		{`{"t":"hooks","c":8,"on":["stages","picks",{"experts":"experts"}]}`, `8 true <nil> <nil>`},
		{`{"t":"sample","c":9,"every":8}`, `9 false this engine does not offer sample <nil>`},
		{"\r\n{ \"c\" : 10 , \"t\":\"pause\" } ", `10 true <nil> <nil>`},
	} {
		reply = a.answer(c.line)
		for strings.HasPrefix(reply, "1 ") { // that of the first message
			if reply != "1 true <nil> 77" {
				t.Errorf("generate is answered with %s", reply)
			}
			k := a.until("reply")
			reply = fmt.Sprint(k["c"], " ", k["ok"], " ", k["why"], " ", k["r"])
		}
		if reply != c.want {
			t.Errorf("%s is answered with %s, want %s", c.line, reply, c.want)
		}
	}
	p.Go()
	p.Done()
	p.End()
}

// TestControlIsBounded: messages that wait for a slow handler are limited, and an engine ends meanwhile.
func TestControlIsBounded(t *testing.T) {
	t.Parallel()
	p := controlled(t)
	a := ask(t, p.Address)
	a.until("synced")
	a.send(strings.Repeat(`{"t":"generate","c":1,"prompt":"wait"}`+"\n", 80))
	if k := a.until("reply"); k["ok"] != false || k["why"] != "the queue of control messages is full" {
		t.Errorf("the answer is %v", k)
	}
	p.Go()
	p.Done()
	p.End()
}

func TestMalformedControl(t *testing.T) {
	t.Parallel()
	p := controlled(t)
	other := ask(t, p.Address)
	for _, c := range []struct{ line, why string }{
		{"{]\n", "malformed line"},
		{"\x00\xff\x80\n", "malformed line"},
		{"7\n", "malformed line"},
		{`{"x":1}` + "\n", "malformed line"},
		{`{"t":[1]}` + "\n", "malformed line"},
		{`{"t":"pause"}` + "\n", "malformed line"},
		{`{"t":"pause","c":1}x` + "\n", "malformed line"},
		{`{"t":"pause","c":1` + "\n", "malformed line"},
		{`{"t":"\ud8","c":1}` + "\n", "malformed line"},
		{`{"t":"cancel","c":1}` + "\n", "malformed line"},
		{`{"t":"hooks","c":1,"on":"x"}` + "\n", "malformed line"},
		{`{"t":"sample","c":1,"every":-1}` + "\n", "malformed line"},
		{`{"t":"launch","c":1}` + "\n", "unknown message"},
		{"GET / HTTP/1.1\r\n\r\n", "malformed line"},
		{`{"t":"pause","c":1,"x":` + strings.Repeat("[", 100_000) + "\n", "malformed line"},
		{strings.Repeat("x", 2<<20), "a line is too long"},
	} {
		a := ask(t, p.Address)
		a.send(c.line)
		if k := a.until("bye"); k["why"] != c.why {
			t.Errorf("%.40q ends with %v, want %s", c.line, k["why"], c.why)
		}
		_ = a.conn.Close() // an engine has few readers
	}
	other.send("\n\r\n")
	if got := other.answer(`{"t":"auth","token":"x"}` + "\n" + `{"t":"pause","c":1}`); got != "1 true <nil> <nil>" {
		t.Errorf("the answer is %s", got)
	}
	p.Go()
	p.Done()
	p.End()
}

func TestTokenOfC(t *testing.T) {
	t.Parallel()
	p := controlled(t, "ADDRESS=tcp:0.0.0.0:0", "TOKEN=sesame")
	address := strings.Replace(p.Address, "0.0.0.0", "127.0.0.1", 1)
	for line, why := range map[string]string{
		`{"t":"auth","token":"wrong"}`: "wrong token", `{"t":"auth"}`: "wrong token", `{"t":"pause","c":1}`: "wrong token",
		`{"t":"auth","token":7}`: "wrong token", "\xff": "wrong token", `{"t":"auth","token":""}`: "wrong token",
		`{"t":"auth","token":"sesamesesame"}`: "wrong token", strings.Repeat("x", 2000): "a line is too long",
	} {
		a := ask(t, address)
		a.until("auth")
		a.send(line + "\n")
		if !a.lines.Scan() || a.lines.Text() != fmt.Sprintf(`{"t":"bye","why":%q}`, why) {
			t.Errorf("%.40q is answered with %s", line, a.lines.Text())
		}
	}
	a := ask(t, address)
	a.send(`{"t":"auth","token":"ses\u0061me"}` + "\n")
	a.until("synced")
	if got := a.answer(`{"t":"pause","c":1}`); got != "1 true <nil> <nil>" {
		t.Errorf("the answer is %s", got)
	}
	w := watch(t, address, "sesame")
	p.Go()
	w.await("the end of the work", func(s *store.Snapshot) bool { return len(s.Log) > 0 && s.Counts.Finished == 3 })
	p.Done()
	p.End()
}

func TestNoControlOverTCPWithoutToken(t *testing.T) {
	t.Parallel()
	p := controlled(t, "ADDRESS=tcp:127.0.0.1:0")
	a := ask(t, p.Address)
	if caps := fmt.Sprint(a.until("hello")["caps"]); strings.Contains(caps, "pause") {
		t.Errorf("it offers %s", caps)
	}
	if got := a.answer(`{"t":"pause","c":1}`); got != "1 false no control over TCP without a token <nil>" {
		t.Errorf("the answer is %s", got)
	}
	p.Go()
	p.Done()
	p.End()
}
