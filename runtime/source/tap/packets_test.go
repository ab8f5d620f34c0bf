package tap

import (
	"bytes"
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/source/tap/capture"
)

// recorder writes the packets of connections to a file.
type recorder struct {
	file *pcapgo.Writer
	port layers.TCPPort // of the next client
	from time.Time      // when the steps begin
}

func record(t testing.TB, to io.Writer) *recorder {
	t.Helper()
	r := &recorder{pcapgo.NewWriterNanos(to), 40000, began}
	if err := r.file.WriteFileHeader(1<<18, layers.LinkTypeEthernet); err != nil {
		t.Fatal(err)
	}
	return r
}

// dialogue writes a connection on which steps are made. Its holes are segments that are left out.
func (r *recorder) dialogue(t testing.TB, steps []step) {
	t.Helper()
	r.port++
	seq, port := [2]uint32{1000 + uint32(r.port), 5000}, [2]layers.TCPPort{r.port, 8000}
	send := func(at time.Duration, from capture.Side, text string, flags func(*layers.TCP)) {
		ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolTCP, SrcIP: net.IP{10, 0, 0, byte(1 + from)}, DstIP: net.IP{10, 0, 0, byte(2 - from)}}
		tcp := &layers.TCP{SrcPort: port[from], DstPort: port[1-from], Seq: seq[from], Ack: seq[1-from], Window: 1 << 15}
		flags(tcp)
		tcp.ACK = !tcp.SYN || from == capture.Server
		if err := tcp.SetNetworkLayerForChecksum(ip); err != nil {
			t.Fatal(err)
		}
		b := gopacket.NewSerializeBuffer()
		ether := &layers.Ethernet{SrcMAC: make(net.HardwareAddr, 6), DstMAC: make(net.HardwareAddr, 6), EthernetType: layers.EthernetTypeIPv4}
		if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, ether, ip, tcp, gopacket.Payload(text)); err != nil {
			t.Fatal(err)
		}
		n := len(b.Bytes())
		if err := r.file.WritePacket(gopacket.CaptureInfo{Timestamp: r.from.Add(at), CaptureLength: n, Length: n}, b.Bytes()); err != nil {
			t.Fatal(err)
		}
		seq[from] += uint32(len(text))
		if tcp.SYN || tcp.FIN {
			seq[from]++
		}
	}
	syn := func(tcp *layers.TCP) { tcp.SYN = true }
	none := func(*layers.TCP) {}
	send(0, capture.Client, "", syn)
	send(time.Microsecond, capture.Server, "", syn)
	send(3*time.Millisecond, capture.Client, "", none)
	for _, s := range steps {
		at := time.Duration(s.at) * time.Millisecond
		switch s.does {
		case "":
			send(at, s.from, s.text, func(tcp *layers.TCP) { tcp.PSH = true })
		case "close":
			send(at, s.from, "", func(tcp *layers.TCP) { tcp.FIN = true })
		case "closed":
			send(at, capture.Client, "", func(tcp *layers.TCP) { tcp.FIN = true })
			send(at, capture.Server, "", func(tcp *layers.TCP) { tcp.FIN = true })
		case "reset":
			send(at, s.from, "", func(tcp *layers.TCP) { tcp.RST = true })
		default:
			seq[s.from] += 100
		}
	}
}

// TestFile checks that a file gives the events of its connections, at times since its first packet.
func TestFile(t *testing.T) {
	var file bytes.Buffer
	record(t, &file).dialogue(t, dialogues[0].steps)
	tap, err := New(Options{From: &file})
	if err != nil {
		t.Fatal(err)
	}
	s := store.New(store.Options{Now: func() event.Time { return 1e9 }})
	if err := tap.Run(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	v := s.Snapshot()
	if len(v.Requests) != 1 || v.Engine.Epoch != began.UnixNano() || v.Engine.Remote.Address != "http://10.0.0.2:8000" || v.Engine.State != event.EngineStopped {
		t.Fatalf("%d requests, %+v", len(v.Requests), v.Engine)
	}
	if r := v.Requests[0]; r.Enqueued != 10e6 || r.TTFT.V != 0.1 || r.ITL.Count != 2 || r.TPOT.V != 0.01 || r.RTT.V != 0.003 || r.Group != "10.0.0.1" || v.Counts.Groups[0].RTT.Max != 3e6 {
		t.Errorf("%+v", r)
	}
	if connections, passed, measured := tap.Counts(); connections != 1 || passed != 1 || measured != 1 || tap.live != 0 {
		t.Errorf("%d connections, %d requests, %d measured, %d in progress", connections, passed, measured, tap.live)
	}
}

// TestYears checks that a file whose stamps are far away is measured as any other, without a time of day that cannot be.
func TestYears(t *testing.T) {
	for year, epoch := range map[int]bool{1970: true, 2025: true, 2100: false, 2106: false} {
		var file bytes.Buffer
		r := record(t, &file)
		r.from = time.Date(year, 1, 1, 0, 0, 0, 1000, time.UTC)
		r.dialogue(t, dialogues[0].steps)
		tap, err := New(Options{From: &file})
		if err != nil {
			t.Fatal(err)
		}
		s := store.New(store.Options{Now: func() event.Time { return 1e9 }})
		if err := tap.Run(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		v := s.Snapshot()
		if q := v.Requests[0]; q.TTFT.V != 0.1 || q.TPOT.V != 0.01 || q.RTT.V != 0.003 || v.Engine.Epoch != 0 != epoch {
			t.Errorf("%d: TTFT %v, TPOT %v, RTT %v, epoch %d", year, q.TTFT, q.TPOT, q.RTT, v.Engine.Epoch)
		}
	}
}

// TestClockSet checks that no number of a request spans a change of the clock that stamps packets, and that others are exact.
func TestClockSet(t *testing.T) {
	words := func(at ...int) (out []step) {
		out = []step{client(20, post(chat, "{}"))}
		for i, ms := range at {
			if i == 0 {
				out = append(out, server(ms, chunkedHead(sse)+chunk(word("a"))))
				continue
			}
			out = append(out, server(ms, chunk(word("a"))))
		}
		ms := at[len(at)-1]
		return append(out, server(ms+1, chunk(stops)+chunk(usage(5, len(at)))+chunk(done)+last), does(ms+2, capture.Client, "close"), does(ms+2, 0, "closed"))
	}
	for name, test := range map[string]struct {
		at               []int // ms of the tokens
		ttft, tpot, e2el bool
		gaps             uint64
		sets             int
	}{
		"never":                                 {[]int{100, 110, 120, 130}, true, true, true, 3, 0},
		"between tokens, by an hour":            {[]int{100, 110, -3_600_000, -3_599_990}, true, false, false, 2, 1},
		"between tokens, by less than a second": {[]int{500, 510, 100, 110}, true, false, false, 2, 1},
		"before the first token":                {[]int{-9000, -8990, -8980}, false, false, false, 2, 1},
		"for one token":                         {[]int{9000, 100, 9010, 9020}, true, false, false, 1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			var file bytes.Buffer
			r := record(t, &file)
			r.dialogue(t, words(test.at...))
			tap, err := New(Options{From: &file})
			if err != nil {
				t.Fatal(err)
			}
			s := store.New(store.Options{Now: func() event.Time { return 1e13 }})
			if err := tap.Run(t.Context(), event.SinkFunc(func(e event.Event) {
				if s.Emit(e); e.Kind == event.KindToken {
					if r := s.Snapshot().Requests[0]; r.TPOT.OK() && !test.tpot && e.Lost {
						t.Errorf("while it runs: TPOT %v", r.TPOT)
					}
				}
			})); err != nil {
				t.Fatal(err)
			}
			v := s.Snapshot()
			q := v.Requests[0]
			if q.TTFT.OK() != test.ttft || q.TPOT.OK() != test.tpot || q.E2EL.OK() != test.e2el || q.ITL.Count != test.gaps || q.ITL.Count > 0 && q.ITL.Max != 10e6 {
				t.Errorf("TTFT %v, TPOT %v, E2EL %v, ITL %+v", q.TTFT, q.TPOT, q.E2EL, q.ITL)
			}
			if q.State != event.StateFinished || q.Generated != len(test.at) || q.AtLeast || q.Torn || v.Counts.AtLeast {
				t.Errorf("%v, %d tokens, %+v", q.State, q.Generated, q)
			}
			if n := tap.assembler.Losses().Clock; n != test.sets {
				t.Errorf("the clock was set %d times, want %d", n, test.sets)
			}
		})
	}
}

// FuzzFile reads hostile files. For all of them, the numbers of requests are possible, and what is kept is bounded.
func FuzzFile(f *testing.F) {
	for _, d := range dialogues {
		var file bytes.Buffer
		record(f, &file).dialogue(f, d.steps)
		f.Add(file.Bytes())
	}
	for _, s := range servings(f) {
		var file bytes.Buffer
		r := record(f, &file)
		r.dialogue(f, s.steps())
		r.dialogue(f, s.steps())
		f.Add(file.Bytes())
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		tap, err := New(Options{From: bytes.NewReader(file)})
		if err != nil {
			return
		}
		s := store.New(store.Options{Now: func() event.Time { return 1e18 }})
		ended := map[event.RequestID]bool{}
		err = tap.Run(context.Background(), event.SinkFunc(func(e event.Event) {
			if e.At < 0 || e.Dur < 0 || e.N < 0 {
				t.Errorf("%+v", e)
			}
			if e.Kind == event.KindRequest && e.State.Final() {
				if ended[e.Req] {
					t.Errorf("request %d ended twice", e.Req)
				}
				ended[e.Req] = true
			}
			s.Emit(e)
		}))
		if tap.held != 0 {
			t.Errorf("%d bytes are held at the end (%v)", tap.held, err)
		}
		if n := tap.live; n != int(tap.last)-len(ended) {
			t.Errorf("%d requests run, %d of %d have ended", n, len(ended), tap.last)
		}
		for _, r := range s.Snapshot().Requests {
			for name, v := range map[string]event.Reading{"TTFT": r.TTFT, "TPOT": r.TPOT, "E2EL": r.E2EL, "RTT": r.RTT} {
				if v.OK() && !event.PlausibleReading(v.V) {
					t.Errorf("%s %v of %+v", name, v, r)
				}
			}
		}
	})
}

// TestClockSetForward checks that packets of a pipe cannot be from the future: their clock was set.
func TestClockSetForward(t *testing.T) {
	tap, _ := newTap(t, Options{Follow: true, Clock: engine.NewClock()})
	for _, step := range []struct {
		at   time.Duration
		sets int
	}{{time.Second, 0}, {time.Hour, 1}, {time.Hour + time.Second, 1}} {
		if tap.advance(began.Add(step.at)); tap.sets != step.sets || time.Duration(tap.now) > time.Minute {
			t.Errorf("%v after the first packet: the clock was set %d times, it is %v", step.at, tap.sets, time.Duration(tap.now))
		}
	}
}
