package tap

import (
	"context"
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
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/source/peer"
	"github.com/llmtop/llmtop/runtime/source/proxy"
)

// TestBesideProxy has the proxy and the tap measure the same requests of real servers. What they count is equal; how far their
// times differ is logged.
func TestBesideProxy(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a tap of live packets needs root")
	}
	for name, start := range map[string]func(*testing.T) (address, path, model string){
		"llama-server": func(t *testing.T) (string, string, string) {
			return peer.LlamaServer(t, "", "--parallel", "4").URL, chat, ""
		},
		"Ollama": func(t *testing.T) (string, string, string) { return peer.Ollama(t).URL, "/api/chat", peer.OllamaModel },
	} {
		t.Run(name, func(t *testing.T) {
			address, path, model := start(t)
			to, err := url.Parse(address)
			if err != nil {
				t.Fatal(err)
			}
			port, _ := strconv.ParseUint(to.Port(), 10, 16)
			clock := engine.NewClock()
			tap, err := New(Options{Port: uint16(port), GroupHeader: "X-Id", Clock: clock})
			if err != nil {
				t.Fatal(err)
			}
			p, err := proxy.New(proxy.Options{To: address, Listen: "127.0.0.1:0", GroupHeader: "X-Id", Clock: clock})
			if err != nil {
				t.Fatal(err)
			}
			var byTap, byProxy eventtest.Log
			ctx, cancel := context.WithCancel(t.Context())
			var both sync.WaitGroup
			both.Go(func() { _ = tap.Run(ctx, &byTap) })
			both.Go(func() { _ = p.Run(ctx, &byProxy) })
			dump := dumped(t, to.Port())
			const requests = 100
			askAll(t, p.Address()+path, model, requests)
			ends := func(l *eventtest.Log) (n int) {
				for _, e := range l.OfKind(event.KindRequest) {
					if e.State.Final() {
						n++
					}
				}
				return n
			}
			eventtest.Wait(t, "the ends of all requests", func() bool { return ends(&byTap) == requests && ends(&byProxy) == requests })
			cancel()
			both.Wait()
			live := measured(byTap.All())
			compare(t, live, measured(byProxy.All()))
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
// measured from its file; nil: there is none.
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

// askAll sends requests, four at a time: most are streams, some are not, are cancelled by the client, or refused.
func askAll(t *testing.T, address, model string, n int) {
	t.Helper()
	var clients sync.WaitGroup
	numbers := make(chan int)
	for range 4 {
		clients.Go(func() {
			for i := range numbers {
				ask(address, model, i)
			}
		})
	}
	for i := range n {
		numbers <- i
	}
	close(numbers)
	clients.Wait()
}

func ask(address, model string, i int) {
	body := fmt.Sprintf(`{"model":%q,"stream":%t,"max_tokens":24,"options":{"num_predict":24},"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"number %d"}]}`, model, i%5 != 1, i)
	if i%10 == 7 {
		body = body[:len(body)/2]
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(body))
	req.Header.Set("X-Id", strconv.Itoa(i))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return
	}
	defer res.Body.Close()
	if i%10 == 3 {
		_, _ = io.CopyN(io.Discard, res.Body, 600)
		return // the rest is cancelled
	}
	_, _ = io.Copy(io.Discard, res.Body)
}

// measurement is what was measured of a request.
type measurement struct {
	queued  event.Time
	at      []event.Time // tokens
	state   event.State
	outcome event.Outcome
}

// measured returns the requests by their groups.
func measured(events []event.Event) map[string]*measurement {
	out, byID := map[string]*measurement{}, map[event.RequestID]*measurement{}
	for _, e := range events {
		switch p := e.Data.(type) {
		case *event.Request:
			m := &measurement{queued: e.At}
			out[p.Group], byID[e.Req] = m, m
		case *event.Outcome:
			byID[e.Req].state, byID[e.Req].outcome = e.State, *p
		case nil:
			if e.Kind == event.KindToken {
				for range e.N {
					byID[e.Req].at = append(byID[e.Req].at, e.At)
				}
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
	for name, list := range map[string][]time.Duration{"TTFT": first, "gaps": gaps} {
		slices.Sort(list)
		if n := len(list); n > 0 {
			t.Logf("%s differ by %v at p50, %v at p99, %v at most, of %d", name, list[n/2], list[n*99/100], list[n-1], n)
		}
	}
	t.Logf("%v", states)
}
