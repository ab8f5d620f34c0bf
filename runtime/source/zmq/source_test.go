package zmq

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/runtime/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// publisher is a publishing socket, with one subscriber at a time.
type publisher struct {
	t *testing.T
	net.Listener
	net.Conn
}

func publish(t *testing.T, network, at string) *publisher {
	t.Helper()
	l, err := net.Listen(network, at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return &publisher{t: t, Listener: l}
}

// accept accepts a subscriber like libzmq, which speaks 3.1 with peers that can.
func (p *publisher) accept() {
	p.t.Helper()
	c, err := p.Accept()
	if err != nil {
		p.t.Fatal(err)
	}
	p.Conn = c
	p.t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(eventtest.Patience))
	hello := bytes.Clone(greeting)
	hello[11] = 1
	p.write(hello)
	if got := p.read(64); !bytes.Equal(got, greeting) {
		p.t.Fatalf("greeted with %q", got)
	}
	p.write([]byte("\x04\x27\x05READY\x0bSocket-Type\x00\x00\x00\x04XPUB\x08Identity\x00\x00\x00\x00"))
	want := "\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03SUB" + "\x00\x01\x01"
	if got := p.read(len(want)); string(got) != want {
		p.t.Fatalf("subscribed with %q", got)
	}
}

func (p *publisher) write(b []byte) {
	p.t.Helper()
	if _, err := p.Write(b); err != nil {
		p.t.Fatal(err)
	}
}

func (p *publisher) read(n int) []byte {
	p.t.Helper()
	b := make([]byte, n)
	if _, err := io.ReadFull(p.Conn, b); err != nil {
		p.t.Fatal(err)
	}
	return b
}

// message returns the frames of a message.
func message(topic string, seq uint64, payload []byte) []byte {
	out := append([]byte{more, byte(len(topic))}, topic...)
	out = append(out, more, 8)
	out = binary.BigEndian.AppendUint64(out, seq)
	out = append(out, long)
	out = binary.BigEndian.AppendUint64(out, uint64(len(payload)))
	return append(out, payload...)
}

func sample(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name + ".msgpack")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func start(t *testing.T, at string) (*Subscriber, *eventtest.Log) {
	t.Helper()
	s, err := New(at, engine.NewClock(), new(Losses))
	if err != nil {
		t.Fatal(err)
	}
	log := new(eventtest.Log)
	eventtest.Run(t, s, log)
	return s, log
}

// addTo adds numbers to sums by name.
func addTo(into map[string]float64, list []event.NamedReading) map[string]float64 {
	for _, n := range list {
		into[n.Name] += n.V
	}
	return into
}

// TestBlocks counts blocks of vLLM's KV cache in both formats, and the messages dropped in between, also while the
// publisher was away.
func TestBlocks(t *testing.T) {
	p := publish(t, "tcp", "127.0.0.1:0")
	s, log := start(t, "tcp://"+p.Listener.Addr().String())
	if s.Numbers() != nil {
		t.Error("numbers before a message")
	}
	p.accept()
	p.write(message("kv@host@model", 5, sample(t, "vllm_kv_event_map")))
	p.write(message("kv@host@model", 6, sample(t, "vllm_kv_event_array")))
	p.write(message("kv@host@model", 9, sample(t, "vllm_kv_event_array")))
	sum := map[string]float64{}
	eventtest.Wait(t, "three messages", func() bool { return addTo(sum, s.Numbers())["kv_blocks_stored"] >= 4 })
	if sum["kv_blocks_stored"] != 4 || sum["kv_blocks_removed"] != 3 || sum["kv_cache_cleared"] != 3 || sum["kv_tokens_stored"] != 64 {
		t.Errorf("%v", sum)
	}
	p.Conn.Close()
	p.accept() // reconnects
	p.write(message("kv@host@model", 12, sample(t, "vllm_kv_event_array")))
	lost := func() uint64 {
		list := log.OfKind(event.KindDrops)
		if len(list) == 0 {
			return 0
		}
		return list[len(list)-1].Data.(*event.Drops)[event.KindKV]
	}
	eventtest.Wait(t, "what was lost", func() bool { return lost() >= 4 })
	p.write(message("kv@host@model", 1, sample(t, "vllm_kv_event_array"))) // restarted
	eventtest.Wait(t, "the last one", func() bool { return addTo(sum, s.Numbers())["kv_blocks_stored"] >= 6 })
	p.write(message("kv@host@model", 2, []byte("\xc1"))) // received, though malformed
	p.write(message("kv@host@model", 3, sample(t, "vllm_kv_event_array")))
	eventtest.Wait(t, "the one after", func() bool { return addTo(sum, s.Numbers())["kv_blocks_stored"] >= 7 })
	if lost() != 4 || s.Passes() {
		t.Errorf("%d were dropped", lost())
	}
}

// TestPasses receives SGLang's forward passes over a Unix socket.
func TestPasses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fpm.0")
	p := publish(t, "unix", path)
	s, log := start(t, "ipc://"+path)
	p.accept()
	p.write([]byte("\x04\x0b\x04PING\x00\x05ctxt")) // a heartbeat
	if pong := string(p.read(11)); pong != "\x04\x09\x04PONGctxt" {
		t.Errorf("answered a heartbeat with %q", pong)
	}
	p.write(message("", 0, sample(t, "sglang_fpm")))
	eventtest.Wait(t, "a step", func() bool { return len(log.OfKind(event.KindStep)) == 1 })
	e := log.OfKind(event.KindStep)[0]
	if e.N != 3 || e.Prompt != 256 || e.Dur != 25_100_000 || e.Step != 42 {
		t.Errorf("%+v", e)
	}
	d := e.Data.(*event.Pass)
	if d.Worker != "w0" || d.Scheduled.DecodeKV.V != 1024 || d.Queued.Prefills.V != 1 || d.Queued.PrefillKV.OK() {
		t.Errorf("%+v", d)
	}
	if n := addTo(map[string]float64{}, s.Numbers()); !s.Passes() || n["passes"] != 1 || n["pass_mean_s"] != 0.0251 {
		t.Errorf("%v", n)
	}
}

// TestNonsense: malformed messages are survived and logged.
func TestNonsense(t *testing.T) {
	for name, c := range map[string]struct {
		send []byte
		want string
	}{
		"a huge frame":     {[]byte("\x02\x00\x00\x00\xff\xff\xff\xff\xff"), "limit"},
		"an unknown frame": {[]byte("\xf0\x00"), "unknown flags"},
		"many frames":      {bytes.Repeat([]byte("\x01\x00"), 20), "more than 8 frames"},
		"one frame":        {[]byte("\x00\x02hi"), "not a topic, a number and a payload"},
		"no MessagePack":   {message("", 1, []byte("\xc1")), "unknown type byte"},
		"a number":         {message("", 1, []byte("\x07")), "neither"},
		"another map":      {message("", 1, []byte("\x81\xa1a\x01")), "not a forward pass"},
		"a huge number": {
			message("", 1, []byte("\x82\xa9wall_time\x01\xb2scheduled_requests\x81\xb3num_decode_requests\xcf\xff\xff\xff\xff\xff\xff\xff\xff")), "implausible",
		},
		"no number": {message("", 1, []byte("\x82\xa9wall_time\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00\xb2scheduled_requests\x80")), "not a forward pass"},
		"no events": {message("", 1, []byte("\x92\x01\x02")), "not a list"},
		"no type":   {message("", 1, []byte("\x92\x01\x91\x01")), "event without a type"},
		"no blocks": {message("", 1, []byte("\x92\x01\x91\x91\xabBlockStored")), "without block_hashes"},
	} {
		p := publish(t, "tcp", "127.0.0.1:0")
		_, log := start(t, "tcp://"+p.Listener.Addr().String())
		p.accept()
		p.write(c.send)
		eventtest.Wait(t, name, func() bool {
			list := log.OfKind(event.KindLog)
			return len(list) > 0 && strings.Contains(list[0].Text, c.want)
		})
	}
}

// TestStrangers: servers that are not publishers are logged.
func TestStrangers(t *testing.T) {
	curve := bytes.Clone(greeting)
	copy(curve[12:], "CURVE")
	for name, c := range map[string]struct {
		send []byte
		want string
	}{
		"HTTP":     {append([]byte("HTTP/1.1 400 Bad Request\r\n"), make([]byte, 64)...), "does not speak ZMQ"},
		"security": {curve, "CURVE"},
		"a reader": {append(bytes.Clone(greeting), "\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03SUB"...), "type \"SUB\""},
		"an error": {append(bytes.Clone(greeting), "\x04\x0a\x05ERROR\x03bad"...), "refused the connection"},
		"silence":  {nil, "ended"},
	} {
		p := publish(t, "tcp", "127.0.0.1:0")
		_, log := start(t, "tcp://"+p.Listener.Addr().String())
		conn, err := p.Accept()
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write(c.send)
		if c.send == nil {
			conn.Close()
			c.want = "EOF"
		}
		eventtest.Wait(t, name, func() bool {
			list := log.OfKind(event.KindLog)
			return len(list) > 0 && (strings.Contains(list[0].Text, c.want) || c.send == nil && list[0].Text != "")
		})
		conn.Close()
	}
}

func TestAddress(t *testing.T) {
	for at, want := range map[string]string{
		"tcp://127.0.0.1:5557": "tcp 127.0.0.1:5557", "tcp://*:5557": "tcp 127.0.0.1:5557", "ipc:///tmp/x.0": "unix /tmp/x.0",
		"tcp://host": "", "udp://a:1": "", "": "", "ipc://": "", "127.0.0.1:5557": "",
	} {
		network, where, err := address(at)
		if got := strings.TrimSpace(network + " " + where); got != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q (%v), want %q", at, got, err, want)
		}
	}
}

// FuzzPayload decodes any payload.
func FuzzPayload(f *testing.F) {
	for _, name := range []string{"sglang_fpm", "vllm_kv_event_array", "vllm_kv_event_map"} {
		f.Add(sample(f, name))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		p, err := read(payload)
		if err != nil {
			return
		}
		if p.stored < 0 || p.tokens < 0 || p.pass != nil && (p.pass.took < 0 || p.pass.decodes < 0 || p.pass.prefill < 0) {
			t.Errorf("%+v", p)
		}
		var s sums
		s.add(p)
		s.numbers(true)
	})
}

// pipe is a connection whose other side has sent everything.
type pipe struct{ io.Reader }

func (pipe) Write(b []byte) (int, error)      { return len(b), nil }
func (pipe) Close() error                     { return nil }
func (pipe) LocalAddr() net.Addr              { return nil }
func (pipe) RemoteAddr() net.Addr             { return nil }
func (pipe) SetDeadline(time.Time) error      { return nil }
func (pipe) SetReadDeadline(time.Time) error  { return nil }
func (pipe) SetWriteDeadline(time.Time) error { return nil }

// FuzzConnection accepts any bytes from the other side, from the greeting on.
func FuzzConnection(f *testing.F) {
	hello := append(bytes.Clone(greeting), "\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03PUB"...)
	f.Add(append(bytes.Clone(hello), message("t", 1, []byte("\x92\x01\x90"))...))
	f.Add(append(bytes.Clone(hello), "\x04\x07\x04PING\x00\x05\x02\xff\xff\xff\xff\xff\xff\xff\xff"...))
	f.Add([]byte(greeting))
	f.Fuzz(func(t *testing.T, in []byte) {
		k, err := shake(pipe{bytes.NewReader(in)})
		for err == nil {
			var frames [][]byte
			if frames, err = k.message(); err == nil && (len(frames) == 0 || len(frames) > maxFrames) {
				t.Errorf("%d frames", len(frames))
			}
		}
	})
}
