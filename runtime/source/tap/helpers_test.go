package tap

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/runtime/source/tap/capture"
)

// began is when the captures of tests begin.
var began = time.Date(2025, 3, 4, 5, 6, 7, 0, time.UTC)

// header is the header of a pcap file with Ethernet frames.
var header = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32([]byte("\xd4\xc3\xb2\xa1\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00"), 1<<18), 1)

// newTap returns a tap that gets its connections from the test, and its events.
func newTap(t testing.TB, opt Options) (*Tap, *eventtest.Log) {
	t.Helper()
	opt.From = bytes.NewReader(header)
	tap, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tap.Close() })
	log := new(eventtest.Log)
	tap.sink = log
	tap.start(began)
	return tap, log
}

// flow is a connection that was captured from its beginning.
func flow() *capture.Flow {
	return &capture.Flow{
		Client: netip.MustParseAddrPort("10.0.0.7:40000"), Server: netip.MustParseAddrPort("10.0.0.1:8000"), Whole: true, RTT: 3 * time.Millisecond,
	}
}

// step is what one side does, at a time in ms.
type step struct {
	at   int
	from capture.Side
	text string
	does string // instead of sending: "close", "gap N", "closed", "reset", "abandoned", "stopped"
}

func client(at int, text string) step { return step{at: at, from: capture.Client, text: text} }
func server(at int, text string) step { return step{at: at, from: capture.Server, text: text} }

// play makes the calls of steps. Each text is cut at an offset, if that is within it.
func play(c capture.Listener, steps []step, cut func(i int) int) {
	for i, s := range steps {
		at := began.Add(time.Duration(s.at) * time.Millisecond)
		n := 0
		switch word, _, _ := strings.Cut(s.does, " "); word {
		case "close":
			c.Close(s.from, at)
		case "gap":
			_, _ = fmt.Sscanf(s.does, "gap %d", &n)
			c.Gap(s.from, at, n)
		case "closed":
			c.End(at, capture.Closed)
		case "reset":
			c.End(at, map[capture.Side]capture.Ending{capture.Client: capture.ResetByClient, capture.Server: capture.ResetByServer}[s.from])
		case "abandoned":
			c.End(at, capture.Abandoned)
		case "stopped":
			c.End(at, capture.Stopped)
		default:
			b := []byte(s.text)
			if n = cut(i); n > 0 && n < len(b) {
				c.Data(s.from, at, b[:n])
				b = b[n:]
			}
			c.Data(s.from, at, b)
		}
	}
}

func whole(int) int { return 0 }

// outline describes the events of requests, one a line.
func outline(events []event.Event) string {
	var b strings.Builder
	merged := events[:0:0]
	for _, e := range events {
		if n := len(merged); e.Kind == event.KindToken && n > 0 {
			if l := &merged[n-1]; l.Kind == e.Kind && l.Req == e.Req && l.At == e.At && l.Choice == e.Choice && !e.Lost {
				l.N += e.N // of several segments
				continue
			}
		}
		merged = append(merged, e)
	}
	for _, e := range merged {
		ms := float64(e.At) / 1e6
		switch p := e.Data.(type) {
		case *event.Request:
			fmt.Fprintf(&b, "%d %g %v %s group=%s model=%s max=%d\n", e.Req, ms, e.State, p.Label, p.Group, p.Model, p.MaxTokens)
		case *event.Outcome:
			fmt.Fprintf(&b, "%d %g %v %q in=%d cached=%d out=%d later=%d", e.Req, ms, e.State, p.Reason, p.Prompt, p.Cached, p.Generated, p.Later)
			if p.Torn {
				b.WriteString(" torn")
			}
			if p.AtLeast {
				b.WriteString(" at_least")
			}
			if p.AnyEnd {
				b.WriteString(" any_end")
			}
			if p.AnyLater {
				b.WriteString(" any_later")
			}
			b.WriteString("\n")
		case nil:
			switch e.Kind {
			case event.KindToken:
				fmt.Fprintf(&b, "%d %g token n=%d index=%d choice=%d", e.Req, ms, e.N, e.Index, e.Choice)
				if e.Lost {
					b.WriteString(" lost")
				}
				b.WriteString("\n")
			case event.KindStage:
				fmt.Fprintf(&b, "%d %g stage %v %v\n", e.Req, ms, e.Stage, time.Duration(e.Dur))
			case event.KindLog:
				fmt.Fprintf(&b, "log %s\n", e.Text)
			}
		}
	}
	return b.String()
}

// post returns a request.
func post(path, body string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer sk-secret\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
}

// document returns a message with a JSON body.
func document(line, body string) string {
	return fmt.Sprintf("%s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", line, len(body), body)
}

// chunkedHead returns the head of a chunked answer.
func chunkedHead(kind string) string {
	return "HTTP/1.1 200 OK\r\nContent-Type: " + kind + "\r\nTransfer-Encoding: chunked\r\n\r\n"
}

func chunk(text string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(text), text) }

const (
	sse  = "text/event-stream"
	last = "0\r\n\r\n"
)

// word returns a message of a chat with a word.
func word(text string) string {
	return `data: {"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":"` + text + `"}}]}` + "\n\n"
}

const (
	stops = `data: {"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	done  = "data: [DONE]\n\n"
)

func usage(in, out int) string {
	return fmt.Sprintf(`data: {"id":"c","object":"chat.completion.chunk","model":"m","choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d}}`+"\n\n", in, out)
}

func sample(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "answers", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
