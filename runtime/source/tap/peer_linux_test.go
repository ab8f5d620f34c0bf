package tap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/features"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/source/peer"
	"github.com/llmtop/llmtop/runtime/source/probe"
	"github.com/llmtop/llmtop/runtime/source/proxy"
)

const llamaServer = "llama-server"

// TestBesideProxy has the proxy and the tap measure the same requests of real servers, and probes those of llama-server. What
// they count is equal; how far their times differ is logged.
func TestBesideProxy(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a tap of live packets needs root")
	}
	for name, start := range map[string]func(*testing.T) (server *peer.Process, path, model string){
		llamaServer: func(t *testing.T) (*peer.Process, string, string) {
			return peer.LlamaServer(t, "", "--parallel", "4", "--threads", "1"), chat, ""
		},
		"Ollama": func(t *testing.T) (*peer.Process, string, string) {
			return peer.Ollama(t), "/api/chat", peer.OllamaModel
		},
	} {
		t.Run(name, func(t *testing.T) {
			server, path, model := start(t)
			to, err := url.Parse(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			port, _ := strconv.ParseUint(to.Port(), 10, 16)
			clock := engine.NewClock()
			tap, err := New(Options{Port: uint16(port), GroupHeader: "X-Id", Clock: clock})
			if err != nil {
				t.Fatal(err)
			}
			p, err := proxy.New(proxy.Options{To: server.URL, Listen: "127.0.0.1:0", GroupHeader: "X-Id", Clock: clock})
			if err != nil {
				t.Fatal(err)
			}
			var byTap, byProxy eventtest.Log
			ctx, cancel := context.WithCancel(t.Context())
			var both sync.WaitGroup
			both.Go(func() { _ = tap.Run(ctx, &byTap) })
			both.Go(func() { _ = p.Run(ctx, &byProxy) })
			dump := dumped(t, to.Port())
			var byProbes *eventtest.Log
			if name == llamaServer {
				byProbes = probed(t, server.PID, clock)
			}
			requests := askAll(p.Address()+path, model, 100)
			if requests < 100 {
				t.Logf("%s answers no more after %d requests: what both saw of these is compared", name, requests)
			}
			ends := func(l *eventtest.Log) (n int) {
				for _, e := range l.OfKind(event.KindRequest) {
					if e.State.Final() {
						n++
					}
				}
				return n
			}
			ended := func() bool { return ends(&byTap) == requests && ends(&byProxy) == requests }
			for end := time.Now().Add(10 * time.Second); !ended(); time.Sleep(10 * time.Millisecond) {
				if time.Now().After(end) { // it keeps connections open whose clients have left
					t.Logf("%s has not ended %d requests: it is killed", name, requests-ends(&byTap))
					server.Kill()
					break
				}
			}
			eventtest.Wait(t, "the ends of all requests", ended)
			live := measured(byTap.All())
			compare(t, live, measured(byProxy.All()))
			if byProbes != nil && requests == 100 {
				refused := requests / 10 // before their prompts were read
				eventtest.Wait(t, "the ends of the requests that the probes see", func() bool { return ends(byProbes) >= requests-refused })
				compareProbes(t, live, byRequest(byProbes.All()), requests-refused)
			}
			cancel()
			both.Wait()
			if file := dump(); file != nil {
				t.Log("live, and from what tcpdump wrote:")
				compare(t, file, live)
			}
			if l := tap.assembler.Losses(); l.Dropped+l.Gaps > 0 {
				t.Errorf("lost %+v", l)
			}
		})
	}
}

// dumped starts tcpdump on the loopback interface, if there is one. The function that it returns ends it and returns what was
// measured from its file; nil: tcpdump is not installed.
func dumped(t *testing.T, port string) func() map[string]*measurement {
	t.Helper()
	name := t.TempDir() + "/packets.pcap"
	cmd := exec.Command("tcpdump", "-i", "lo", "-U", "-B", "65536", "-w", name, "port", port)
	if cmd.Start() != nil {
		return func() map[string]*measurement { return nil }
	}
	eventtest.Wait(t, "tcpdump", func() bool {
		s, err := os.Stat(name)
		return err == nil && s.Size() > 0
	})
	return func() map[string]*measurement {
		time.Sleep(2 * time.Second) // its buffer
		_ = cmd.Process.Kill()      // it has written each packet
		_ = cmd.Wait()
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		tap, err := New(Options{From: file, GroupHeader: "X-Id"})
		if err != nil {
			t.Fatal(err)
		}
		var log eventtest.Log
		if err := tap.Run(context.Background(), &log); err != nil {
			t.Fatal(err)
		}
		return measured(log.All())
	}
}

// askAll sends requests, four at a time: most are streams, some are not, are cancelled by the client, or refused. It stops when
// one is not answered, and returns how many it has sent.
func askAll(address, model string, n int) (sent int) {
	var clients sync.WaitGroup
	var next atomic.Int64
	var stopped atomic.Bool
	for range 4 {
		clients.Go(func() {
			for !stopped.Load() {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if !ask(address, model, i) {
					stopped.Store(true)
				}
			}
		})
	}
	clients.Wait()
	return min(int(next.Load()), n)
}

// ask sends a request, and reports whether its answer came to its end. Its prompt has i tokens more than that of request 0.
func ask(address, model string, i int) bool {
	cancelled, tokens := i%10 == 3, 24
	if cancelled {
		tokens = 200 // they have not all been sent when the client leaves
	}
	body := fmt.Sprintf(`{"model":%q,"stream":%t,"max_tokens":%d,"options":{"num_predict":%d},"stream_options":{"include_usage":true},"messages":[{"role":"user","content":%q}]}`,
		model, i%5 != 1, tokens, tokens, "number"+strings.Repeat(" a", i))
	if i%10 == 7 {
		body = body[:len(body)/2]
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second) // Ollama sometimes answers no more after cancelled requests
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(body))
	req.Header.Set("X-Id", strconv.Itoa(i))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	if cancelled {
		_, _ = io.CopyN(io.Discard, res.Body, 600) // the rest is cancelled
	} else {
		_, _ = io.Copy(io.Discard, res.Body)
	}
	return ctx.Err() == nil
}

// measurement is what was measured of a request.
type measurement struct {
	group   string
	queued  event.Time
	sent    event.Time   // the first token has left, by probes
	at      []event.Time // tokens
	state   event.State
	outcome event.Outcome
}

// measured returns the requests by their groups.
func measured(events []event.Event) map[string]*measurement {
	out := map[string]*measurement{}
	for _, m := range byRequest(events) {
		out[m.group] = m
	}
	return out
}

// byRequest returns the requests by their numbers.
func byRequest(events []event.Event) map[event.RequestID]*measurement {
	out := map[event.RequestID]*measurement{}
	for _, e := range events {
		if e.Req != 0 && out[e.Req] == nil {
			out[e.Req] = &measurement{}
		}
		m := out[e.Req]
		switch p := e.Data.(type) {
		case *event.Request:
			m.queued, m.group = e.At, p.Group
		case *event.Outcome:
			m.state, m.outcome = e.State, *p
		case nil:
			switch {
			case e.Kind == event.KindToken:
				for range e.N {
					m.at = append(m.at, e.At)
				}
			case e.Kind == event.KindStage && e.Stage == event.StageSend:
				m.sent = e.At
			}
		}
	}
	return out
}

// compare checks that two measurements count the same, and logs how their times differ.
func compare(t *testing.T, tap, proxy map[string]*measurement) {
	t.Helper()
	var first, gaps []time.Duration
	states := map[event.State]int{}
	for id, want := range proxy {
		got := tap[id]
		if got == nil {
			t.Errorf("%s is missing", id)
			continue
		}
		states[got.state]++
		if got.state != want.state || got.outcome.Reason != want.outcome.Reason {
			t.Errorf("%s: %v %q, otherwise %v %q", id, got.state, got.outcome.Reason, want.state, want.outcome.Reason)
		}
		if want.state == event.StateCancelled { // it may see tokens that the proxy no longer reads
			continue
		}
		a, b := got.outcome, want.outcome
		a.Later, a.Reuse, b.Later, b.Reuse = 0, event.Reuse{}, 0, event.Reuse{}
		if a != b || len(got.at) != len(want.at) {
			t.Errorf("%s: %+v, %d tokens, otherwise %+v, %d", id, a, len(got.at), b, len(want.at))
			continue
		}
		for i := range got.at {
			if i == 0 {
				first = append(first, time.Duration(got.at[0]-got.queued-want.at[0]+want.queued).Abs())
			} else {
				gaps = append(gaps, time.Duration(got.at[i]-got.at[i-1]-want.at[i]+want.at[i-1]).Abs())
			}
		}
	}
	logDifferences(t, "TTFT", first)
	logDifferences(t, "gaps", gaps)
	t.Logf("%v", states)
}

func logDifferences(t *testing.T, what string, list []time.Duration) {
	t.Helper()
	slices.Sort(list)
	if n := len(list); n > 0 {
		t.Logf("%s differ by %v at p50, %v at p99, %v at most, of %d", what, list[n/2], list[n*99/100], list[n-1], n)
	}
}

// compareProbes checks that the tap and probes count the same and agree on the order of events, and logs how their times
// differ. The server read the prompts of n requests, each of another length, by which they are matched.
func compareProbes(t *testing.T, tap map[string]*measurement, probes map[event.RequestID]*measurement, n int) {
	t.Helper()
	byLength := map[int]*measurement{}
	for _, m := range probes {
		byLength[m.outcome.Prompt] = m
	}
	if len(probes) != n || len(byLength) != n {
		t.Fatalf("probes saw %d requests, %d lengths of prompts, want %d", len(probes), len(byLength), n)
	}
	var received, first, left, gaps, after []time.Duration
	states := map[event.State]int{}
	for id, got := range tap {
		if got.state == event.StateFailed { // it was refused unread
			continue
		}
		i, _ := strconv.Atoi(id)
		want := byLength[tap["0"].outcome.Prompt+i]
		if want == nil || got.state != want.state {
			t.Errorf("%s: %+v, by probes %+v", id, got, want)
			continue
		}
		states[got.state]++
		a, b := got.outcome, want.outcome
		switch {
		case got.state == event.StateCancelled: // the server does not send all that it has sampled
			if len(got.at) > len(want.at) {
				t.Errorf("%s: %d tokens were sent, %d sampled", id, len(got.at), len(want.at))
			}
		case a.Prompt != b.Prompt || a.Cached != b.Cached || a.Generated != b.Generated || b.Generated != len(want.at):
			t.Errorf("%s: %+v, by probes %+v, %d tokens", id, a, b, len(want.at))
		}
		if len(want.at) == 0 || got.queued >= want.queued || want.queued >= want.at[0] { // its header came in one packet
			t.Errorf("%s: sent at %d, received at %d, tokens sampled at %d", id, got.queued, want.queued, want.at)
		}
		received = append(received, time.Duration(want.queued-got.queued))
		for k := range min(len(got.at), len(want.at)) { // a token that ends a text is not sent
			if after = append(after, time.Duration(got.at[k]-want.at[k])); got.at[k] <= want.at[k] {
				t.Errorf("%s: token %d was sent at %d and sampled at %d", id, k, got.at[k], want.at[k])
			}
			switch {
			case k > 0:
				gaps = append(gaps, time.Duration(got.at[k]-got.at[k-1]-want.at[k]+want.at[k-1]).Abs())
			case want.sent != 0:
				first = append(first, time.Duration(got.at[0]-got.queued-want.sent+want.queued).Abs())
				left = append(left, time.Duration(want.sent-got.at[0]))
			}
		}
		if len(got.at) == len(want.at) && want.sent != 0 && got.at[0] > want.sent { // the kernel stamps a packet while it is sent
			t.Errorf("%s: the first token was sent at %d, by probes it had left at %d", id, got.at[0], want.sent)
		}
	}
	if len(first) == 0 || len(gaps) == 0 {
		t.Error("nothing to compare")
	}
	logDifferences(t, "beside probes: TTFT", first)
	logDifferences(t, "beside probes: packet of a request and its receipt", received)
	logDifferences(t, "beside probes: packet of a first token and its sending", left)
	logDifferences(t, "beside probes: gaps", gaps)
	logDifferences(t, "beside probes: sampling of a token and its packet", after)
	t.Logf("beside probes: %v", states)
}

// probed has probes watch a process until the test ends. It returns nil where the machine does not permit them.
func probed(t *testing.T, pid int, clock engine.Clock) *eventtest.Log {
	t.Helper()
	if err := errors.Join(features.HaveProgramType(ebpf.Kprobe), probe.Permitted()); err != nil {
		t.Logf("without probes: %v", err)
		return nil
	}
	target, err := probe.Inspect(pid)
	if err != nil {
		t.Fatal(err)
	}
	p, err := probe.Open(target, clock, engine.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	var log eventtest.Log
	eventtest.Run(t, p, &log)
	eventtest.Wait(t, "the model of the probes", func() bool { return len(log.OfKind(event.KindModel)) > 0 })
	return &log
}
